"""The tables of wrong submissions, each with its records and its check."""

from tests.trial.grading.formulas import WRONG_FORMULAS
from tests.trial.grading.ladder import WRONG_ENGINES
from tests.trial.grading.optimizers import WRONG_OPTIMIZERS
from tests.trial.grading.report import (
    engine_outcome,
    formula_outcome,
    gradient_outcome,
    optimizer_outcome,
    trace_outcome,
)
from tests.trial.grading.traces import WRONG_TRACES
from tests.trial.grading.wrong_basics import BASICS
from tests.trial.grading.wrong_chain import CHAIN
from tests.trial.grading.wrong_rules import RULES

WRONG_GRADIENTS = [*BASICS, *CHAIN, *RULES]
WRONG_TABLES = (
    ("wrong gradients", WRONG_GRADIENTS, gradient_outcome),
    ("wrong optimizers", WRONG_OPTIMIZERS, optimizer_outcome),
    ("wrong formulas", WRONG_FORMULAS, formula_outcome),
    ("wrong answers to sheets", WRONG_TRACES, trace_outcome),
    ("wrong engines", WRONG_ENGINES, engine_outcome),
)
