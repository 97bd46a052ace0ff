"""Analytical models of TCP, of the links below it and of the loops around it.

Every model is one file, named by the field's term, and one line of `registry`. `ackclock model NAME` computes each from
the shell, `ackclock list models` lists them.
"""
