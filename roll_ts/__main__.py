"""`python -m roll_ts` is `roll-ts`."""

import sys

from roll_ts.cli import main

sys.exit(main())
