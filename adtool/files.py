"""Names of the files that parent and child share, in a private directory of one run."""

JOB = "job.json"
STATUS = "status"
RESULT = "result.json"
CRASH = "crash.txt"
JACOBIAN = "jacobian.json"
PLOT = "plot"
TRACES = "traces.json"
