"""What must hold in a simulated world, checked from records and answers by independent rules.

Nothing here calls the coordinator's own functions (`fencing` states their rules again from the KIPs), so that
a wrong rule there is found. A `Violation` ends a run and names its seed and step.
"""
