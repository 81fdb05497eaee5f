"""The operations of the language. Importing this package fills `engine.ir.ops.OPS`."""

from engine.builtins import bits as bits
from engine.builtins import decompositions as decompositions
from engine.builtins import library as library
from engine.builtins import linear as linear
from engine.builtins import matrices as matrices
from engine.builtins import operators as operators
from engine.builtins import scalars as scalars
from engine.builtins import structure as structure
