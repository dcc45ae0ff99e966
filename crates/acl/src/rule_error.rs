//! Why a rule is refused, in Redis's words (`ACLSetUserStringError`).

/// Why a rule is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// There is no such rule, or its pattern has spaces.
    #[error("Syntax error")]
    Syntax,
    /// There is no such command or category.
    #[error("Unknown command or category name in ACL")]
    UnknownCommand,
    /// All keys are allowed already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have \
         any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    AllKeys,
    /// All channels are allowed already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not \
         have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    AllChannels,
    /// The password to be removed is none of the user's.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// What follows `#` or `!` is no SHA-256.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters"
    )]
    PasswordHash,
    /// A first argument of a subcommand.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgumentOfSubcommand,
}
