"""When not to believe an estimate: what a bag says about the assumptions behind it, in plain words."""
