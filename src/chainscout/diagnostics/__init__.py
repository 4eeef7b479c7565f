"""Is it a Markov chain at all?"""
