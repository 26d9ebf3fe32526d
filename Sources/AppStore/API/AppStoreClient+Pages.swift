internal import Ledger

extension AppStoreClient {
    /// How often a list is begun again because Apple forgot where it was.
    static let restartsMax = 3
    /// A list that has more pages than this goes in circles.
    static let pagesMax = 100_000

    /// Reads a whole transaction history, or what is new since a `revision`.
    ///
    /// - Parameters:
    ///   - id: any transaction id of the customer's.
    ///   - query: what narrows it; the same as when the revision was read.
    ///   - revision: from where to go on; nil for everything. One that Apple no longer takes is
    ///     forgotten, and everything is read.
    ///   - page: handed each page before the next is asked for.
    /// - Returns: the revision to go on from next time.
    /// - Throws: `AppStoreAPIError`, and what `page` throws.
    public func transactionHistory(
        of id: String,
        _ query: TransactionHistoryQuery = TransactionHistoryQuery(),
        after revision: String? = nil,
        page: (APIResponse) throws -> Void
    ) throws -> String? {
        try revisions(after: revision, page: page) { revision in
            .transactionHistory(id: id, query, revision: revision)
        }
    }

    /// Reads a whole refund history, or what is new since a `revision`.
    ///
    /// - Returns: the revision to go on from next time.
    /// - Throws: `AppStoreAPIError`, and what `page` throws.
    public func refundHistory(
        of id: String,
        after revision: String? = nil,
        page: (APIResponse) throws -> Void
    ) throws -> String? {
        try revisions(after: revision, page: page) { .refundHistory(id: id, revision: $0) }
    }

    /// Reads a window of notifications.
    ///
    /// Where Apple forgot the token of a page (4000017), the window is begun again: pages come
    /// twice then, and what is in them is known by its `notificationUUID`.
    ///
    /// - Parameters:
    ///   - query: the window.
    ///   - page: handed each page before the next is asked for.
    /// - Throws: `AppStoreAPIError`, and what `page` throws.
    public func notificationHistory(
        _ query: NotificationHistoryQuery,
        page: (APIResponse) throws -> Void
    ) throws {
        var token: String?
        var number = 1
        var restarts = 0
        while true {
            let endpoint = APIEndpoint.notificationHistory(query, paginationToken: token)
            let response: APIResponse
            do {
                response = try send(endpoint, page: number)
            } catch {
                guard error.code == .paginationTokenExpired, restarts < Self.restartsMax else {
                    throw error
                }
                restarts += 1
                token = nil
                number = 1
                continue
            }
            try page(response)
            guard let answer = response.answer, answer.hasMore else { return }
            guard let next = answer.paginationToken, next != token, number < Self.pagesMax else {
                throw circle(endpoint, number, "paginationToken")
            }
            token = next
            number += 1
        }
    }

    private func revisions(
        after start: String?,
        page: (APIResponse) throws -> Void,
        _ endpoint: (String?) -> APIEndpoint
    ) throws -> String? {
        var revision = start
        var number = 1
        while true {
            let response: APIResponse
            do {
                response = try send(endpoint(revision), page: number)
            } catch {
                guard error.code == .invalidRequestRevision, start != nil, number == 1,
                    revision != nil
                else { throw error }
                revision = nil
                continue
            }
            try page(response)
            guard let answer = response.answer else { return revision }
            guard answer.hasMore else { return answer.revision ?? revision }
            guard let next = answer.revision, next != revision, number < Self.pagesMax else {
                throw circle(endpoint(revision), number, "revision")
            }
            revision = next
            number += 1
        }
    }

    private func circle(
        _ endpoint: APIEndpoint,
        _ page: Int,
        _ field: String
    ) -> AppStoreAPIError {
        AppStoreAPIError(
            .unreadableAnswer,
            "there is more, but no new \(field) to ask for it with",
            endpoint: endpoint,
            environment: access.host.environment,
            page: page
        )
    }
}
