"""The engine on the CPU: one loop for every policy, interpreted or compiled, and the state that it changes."""

from .state import Block, State, alike_neighbours, prepare

__all__ = ["Block", "State", "alike_neighbours", "prepare"]
