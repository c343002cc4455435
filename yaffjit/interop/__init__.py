"""yaffjit where other engines run the work: functions of Arrow batches, Ray, PyTorch."""
