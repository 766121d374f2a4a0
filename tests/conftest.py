from hypothesis import settings

# A first call compiles, so a deadline would measure the compiler; the same examples every time, so a failure stays.
settings.register_profile("quanet", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("quanet")
