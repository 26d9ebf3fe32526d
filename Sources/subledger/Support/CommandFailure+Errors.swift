internal import AppStore
internal import EventLog
internal import HTTP
internal import LedgerService
internal import Postgres

extension CommandFailure {
    /// What an error of any module means to the user.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as InputError: self = .input(error.message)
        case let error as ConfigurationError: self = .input("\(error)")
        case let error as ServiceSettings.VariableError: self = .input("\(error)")
        case let error as AppStoreError: self = .input("\(error)")
        case let error as APIKeyError: self = .input("\(error)")
        case let error as AppStoreClients.NotSetUp: self = .input("\(error)")
        case let error as AppStoreAPIError:
            self.init(exitCode: .someRejected, message: printable("\(error)"))
        case let error as PostgresError: self = Self.database(error)
        case let error as HTTPError: self = .input("\(error)")
        case let error as HTTPClientError: self = .input("\(error)")
        case let error as EmbeddedServerError:
            self.init(exitCode: .databaseUnavailable, message: error.message)
        case let error as EventLogError: self = Self.log(error)
        case let error as ReadModelError: self = Self.readModel(error)
        case let refusal as OwnerLinking.Refusal: self = Self.ownerLink(refusal)
        case let refusal as EventSkipping.Refusal: self = .notFound("\(refusal)")
        default: self.init(exitCode: .integrity, message: "\(error)")
        }
    }

    /// What a database error means: away, full, not allowed, not migrated or corrupt.
    static func database(_ error: PostgresError) -> CommandFailure {
        let state = error.sqlState ?? ""
        let isAway = error.code == .connection || error.isTemporary
        return CommandFailure(
            exitCode: exitCode(sqlState: state, isAway: isAway),
            message: "the database: \(error)\(remedy(sqlState: state))"
        )
    }

    private static func log(_ error: EventLogError) -> CommandFailure {
        let state = error.sqlState ?? ""
        let exitCode: ExitCode =
            switch error.code {
            case .unavailable, .unknownOutcome, .temporary, .stale: .databaseUnavailable
            case .schema: .schema
            case .database: exitCode(sqlState: state, isAway: false)
            case .corrupt, .unreadable, .restored: .integrity
            case .invalid: .usage
            }
        return CommandFailure(
            exitCode: exitCode,
            message: "\(error)\(remedy(sqlState: state))"
        )
    }

    private static func ownerLink(_ refusal: OwnerLinking.Refusal) -> CommandFailure {
        switch refusal {
        case .unusable, .ambiguous: .usage(printable("\(refusal)"))
        case .unknownSubscription, .noSubscription, .ownedByAnother:
            .notFound(printable("\(refusal)"))
        }
    }

    private static func readModel(_ error: ReadModelError) -> CommandFailure {
        let state = error.sqlState ?? ""
        let exitCode: ExitCode =
            switch error.code {
            case .unknownProjection, .question: .usage
            case .notKnown: .someRejected
            case .rebuildRuns, .unavailable, .stopped: .databaseUnavailable
            case .outOfDate, .schema: .schema
            case .unreadableEvent: .integrity
            case .database: exitCode(sqlState: state, isAway: false)
            }
        return CommandFailure(
            exitCode: exitCode,
            message: "\(error)\(remedy(sqlState: state))"
        )
    }

    private static func exitCode(sqlState state: String, isAway: Bool) -> ExitCode {
        // 28: the login is refused. 42501: a privilege is missing. 3D000: no such database.
        if isAway || state.hasPrefix("28") || state == "3D000" || state == "42501" {
            return .databaseUnavailable
        }
        return ["42P01", "3F000", "42703", "42883"].contains(state) ? .schema : .integrity
    }

    private static func remedy(sqlState state: String) -> String {
        switch state {
        case "53100":
            "; the server's disk is full. What was committed stays; free some space and run the "
                + "same command again"
        case "42501":
            "; the role lacks a privilege: `subledger migrate --print-roles` shows who needs which"
        case "3D000": "; create the database first: createdb NAME"
        case "42P01", "3F000": "; run: subledger migrate"
        default: ""
        }
    }
}
