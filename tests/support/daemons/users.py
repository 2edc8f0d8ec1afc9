# SPDX-License-Identifier: Apache-2.0
"""Users as berth names them."""
import os
import pwd


def user_name(uid=None):
    """The name of a user, ours unless said, or the number of one who has none."""
    uid = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
