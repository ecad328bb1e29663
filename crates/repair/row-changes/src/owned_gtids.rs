//! The GTIDs that a server's sessions own: of transactions that are being committed, or applied.

/// `UUID:5#12:7#13,UUID:1#2`, as `gtid_owned` has them, without the sessions that own them.
pub(crate) fn without_owners(owned: &str) -> String {
    let mut set = String::with_capacity(owned.len());
    let mut in_owner = false;
    for letter in owned.chars() {
        in_owner = letter == '#' || in_owner && letter.is_ascii_digit();
        if !in_owner {
            set.push(letter);
        }
    }
    set
}
