internal import EventLog
internal import HTTP
internal import Postgres

/// What can keep a request from being answered, each with its status and its stable name.
struct ServiceProblem: Error, Hashable, Sendable {
    /// What is sent.
    var problem: Problem

    private init(_ status: Int, _ reason: String, _ title: String, _ detail: String? = nil) {
        problem = Problem(status: status, reason: reason, title: title, detail: detail)
    }

    /// A parameter has a value that makes no sense.
    static func parameter(_ name: String, _ want: String) -> ServiceProblem {
        ServiceProblem(
            400,
            "parameter",
            "A parameter has a value that cannot be used.",
            "\(name): \(want)"
        )
    }

    /// A cursor that this list has not handed out: in another list it would pass rows over.
    static let foreignCursor = parameter(
        "cursor",
        "the next_cursor of the page before of this very list"
    )

    /// What is asked about is not there.
    static func notFound(_ what: String) -> ServiceProblem {
        ServiceProblem(404, "not_found", "What is asked about is not there.", what)
    }

    /// The answer would have more rows than an answer may have.
    static func tooLarge(_ remedy: String) -> ServiceProblem {
        ServiceProblem(
            422,
            "too_large",
            "The answer would be larger than an answer may be.",
            remedy
        )
    }

    /// No token, or none that is good.
    static let unauthorized = ServiceProblem(
        401,
        "unauthorized",
        "A bearer token is needed; see: subledger token create."
    )

    /// The token's role may not ask this.
    static func forbidden(_ role: String) -> ServiceProblem {
        ServiceProblem(403, "forbidden", "The token's role may not ask this.", "it needs: \(role)")
    }

    /// Too many wrong tokens came from there.
    static let tooMany = ServiceProblem(
        429,
        "too_many_attempts",
        "Too many wrong tokens came from this address."
    )

    /// An address that may not call this.
    static let address = ServiceProblem(
        403,
        "address",
        "Only Apple's addresses may deliver notifications here."
    )

    /// More waits than may wait.
    static let busy = ServiceProblem(503, "busy", "Too much waits already; ask again.")

    /// The database is away.
    static let databaseUnavailable = ServiceProblem(
        503,
        "database_unavailable",
        "The database cannot be reached; ask again."
    )

    /// The read models are not this program's.
    static let outOfDate = ServiceProblem(
        503,
        "out_of_date",
        "The read models were made by another version of this program."
    )

    /// The read models have not come so far in the time that was given.
    static func behind(_ position: Int64) -> ServiceProblem {
        ServiceProblem(
            504,
            "behind",
            "The read models have not come so far in the time given.",
            "after: \(position) is not shown yet"
        )
    }

    /// The log was restored since that position was read, and what came after the cut may be lost.
    static func epochEnded(_ epoch: Int64, cutAfter: Int64, present: Int64) -> ServiceProblem {
        var result = ServiceProblem(
            409,
            "epoch_ended",
            "The log was restored or failed over since that position was read.",
            "epoch \(epoch) is over: forget what you read after position \(cutAfter), and go on "
                + "with epoch=\(present) and the smaller of that and your own position"
        )
        result.problem.numbers = ["cut_after": cutAfter, "epoch": present]
        return result
    }

    /// The key of a request was used for another one.
    static let idempotencyMismatch = ServiceProblem(
        422,
        "idempotency_mismatch",
        "This Idempotency-Key was used for another request."
    )

    /// Who approves is who asked.
    static let selfApproval = ServiceProblem(
        403,
        "self_approval",
        "Who asked for an extension cannot approve it."
    )

    /// A request to extend is not in the state for that.
    static func notOpen(_ what: String) -> ServiceProblem {
        ServiceProblem(409, "not_open", "The request is not in the state for that.", what)
    }

    /// Apple's server cannot be asked.
    static func appStoreUnavailable(_ what: String) -> ServiceProblem {
        ServiceProblem(503, "app_store_unavailable", "Apple cannot be asked now.", what)
    }

    /// Something else went wrong; the log has it under the request's id.
    static let failed = ServiceProblem(
        500,
        "internal",
        "The question could not be answered; the service's log says why."
    )

    /// What an error that a question met means to who asked.
    static func response(to error: any Error) -> HTTPResponse {
        if isConnectionLoss(error) {
            return .problem(databaseUnavailable.problem).retrying(after: 5)
        }
        if let error = error as? ReadModelError, [.outOfDate, .schema].contains(error.code) {
            return .problem(outOfDate.problem).retrying(after: 30)
        }
        return .problem(failed.problem)
    }

    /// Whether the session was lost or could not be opened, so that another one may do.
    static func isConnectionLoss(_ error: any Error) -> Bool {
        switch error {
        case let error as PostgresError: error.isTemporary
        case let error as ReadModelError: error.isTemporary
        case let error as EventLogError:
            [.unavailable, .temporary, .unknownOutcome, .restored].contains(error.code)
        default: false
        }
    }
}

extension HTTPResponse {
    /// The same answer, which says when to try again.
    func retrying(after seconds: Int) -> HTTPResponse {
        var response = self
        response.headers["Retry-After"] = "\(seconds)"
        return response
    }
}
