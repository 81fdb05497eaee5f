"""What a tape records: a class for each kind of operation, which knows all that is done with it.

record            what every operation can be asked
launch_arguments  what a launch got, and what that held
launch            a kernel launch
linear            what stores a linear function of an array, in general
copy              a copy between arrays
fill              a fill from the host
function          a Python function of the user's, for the backward pass
foreign           an operation of another framework
captured          launches and foreign operations without the memory of the program
"""

from engine.tape.records.copy import CopyRecord
from engine.tape.records.fill import FillRecord
from engine.tape.records.function import FunctionRecord
from engine.tape.records.launch import LaunchRecord, launches
from engine.tape.records.linear import LinearRecord, kind_of
from engine.tape.records.record import Record

__all__ = [
    "CopyRecord", "FillRecord", "FunctionRecord", "LaunchRecord", "LinearRecord", "Record",
    "kind_of", "launches",
]  # fmt: skip
