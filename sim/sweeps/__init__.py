"""Many runs of one scenario: by seeds with drawn faults, or with one fault at every place where it can happen."""
