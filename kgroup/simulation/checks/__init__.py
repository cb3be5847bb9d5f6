"""What must hold in a simulated world, judged from records and answers by rules told a second time.

Nothing here asks the coordinator's own functions what is right (`fencing` tells its rules again from the
KIPs), so that a rule it gets wrong is found. A `Violation` ends a run and names its seed and step.
"""
