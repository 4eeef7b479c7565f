# Every target is the command of dev.py of the same name; `python3 dev.py` does the same without make.
PYTHON ?= python3
EXTRAS ?=

.PHONY: help demo extra setup test test-system test-interop test-lowest test-gpu trials soak coverage lint docs dist bench bench-gpu clean
.NOTPARALLEL: # targets share environments

help:
	@$(PYTHON) dev.py --help

demo extra setup test test-system test-interop test-lowest test-gpu trials soak coverage lint docs dist bench bench-gpu clean:
	@$(PYTHON) dev.py $@ $(if $(filter extra,$@),$(EXTRAS))
