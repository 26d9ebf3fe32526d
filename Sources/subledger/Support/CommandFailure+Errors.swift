internal import LedgerService
internal import Postgres

extension CommandFailure {
    /// What an error of any module means to the user.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as InputError: self = .input(error.message)
        case let error as ConfigurationError: self = .input("\(error)")
        case let error as PostgresError: self = Self.database(error)
        default: self.init(exitCode: .integrity, message: "\(error)")
        }
    }

    /// What a database error means: away, full, not allowed, not migrated or corrupt.
    static func database(_ error: PostgresError) -> CommandFailure {
        let state = error.sqlState ?? ""
        let remedy: String
        switch state {
        case "53100":
            remedy =
                "; the server's disk is full. What was committed stays; free some space and "
                + "run the same command again"
        case "42501":
            remedy =
                "; the role lacks a privilege: `subledger migrate --print-roles` shows who "
                + "needs which"
        case "3D000": remedy = "; create the database first: createdb NAME"
        default: remedy = ""
        }
        let isAway =
            error.code == .connection || error.isTemporary || state.hasPrefix("28")
            || state == "3D000" || state == "42501"
        let isSchema = ["42P01", "3F000", "42703", "42883"].contains(state)
        return CommandFailure(
            exitCode: isAway ? .databaseUnavailable : isSchema ? .schema : .integrity,
            message: "the database: \(error)\(remedy)"
        )
    }
}
