package import AppStore
package import EventLog
package import Ledger
package import Postgres
internal import Synchronization

/// Reaches Apple for extensions over the App Store Server API.
///
/// What is read is in the log before it is used. What changes something is sent once: only a
/// token that Apple refuses is made anew and the request sent again, since nothing was done then.
/// Apple's body is handed back whatever it says, for the audit.
package final class AppStoreExtensionGateway: ExtensionGateway {
    /// How long reading may take: somebody waits for the answer.
    static let readingPatience = (attemptsMax: 3, waitMax: Milliseconds(rawValue: 15_000))
    /// What changes something is sent once, and soon or not at all.
    static let changingPatience = (attemptsMax: 1, waitMax: Milliseconds(rawValue: 10_000))

    private let current: Mutex<AppStoreClients>
    private let surroundings: APISurroundings
    private let verifier: Verifier
    private let connect: @Sendable () throws -> Connection

    /// Makes it.
    ///
    /// - Parameters:
    ///   - clients: who asks.
    ///   - surroundings: clock, sleep and chance.
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - connect: opens a session that may append.
    package init(
        _ clients: AppStoreClients,
        surroundings: APISurroundings,
        verifier: Verifier,
        connect: @escaping @Sendable () throws -> Connection
    ) {
        current = Mutex(clients)
        self.surroundings = surroundings
        self.verifier = verifier
        self.connect = connect
    }

    /// Asks with other clients from now on, as after a key was read again.
    package func use(_ clients: AppStoreClients) { current.withLock { $0 = clients } }

    private var clients: AppStoreClients { current.withLock { $0 } }

    package func keyID(of app: AppKey) -> String? {
        clients.account(app)?.client.access.key.keyID
    }

    // MARK: - Reading

    package func refreshStatuses(of id: String, in app: AppKey) throws {
        let response = try record(.subscriptionStatuses(id: id), about: id, app)
        let told = response.answer?.subscriptions.contains { $0.originalTransactionID == id }
        guard told == true else {
            throw ExtensionGatewayFailure("Apple's answer does not name the subscription")
        }
    }

    package func refreshTransaction(_ id: String, in app: AppKey) throws {
        let response = try record(.transactionInfo(id: id), about: id, app)
        guard response.answer?.items.isEmpty == false else {
            throw ExtensionGatewayFailure("Apple's answer holds no transaction")
        }
    }

    private func record(
        _ endpoint: APIEndpoint,
        about stream: String,
        _ app: AppKey
    ) throws -> APIResponse {
        guard let account = clients.account(app) else { throw Self.keyless(app) }
        let client = account.client.with(
            attemptsMax: Self.readingPatience.attemptsMax,
            waitMax: Self.readingPatience.waitMax
        )
        // Each request has a stream of its own for its body.
        func recorder(_ request: String) -> ResponseRecorder {
            ResponseRecorder(run: request, verifier: verifier, connect: connect)
        }
        let response: APIResponse
        do throws(AppStoreAPIError) { response = try client.send(endpoint) } catch {
            let now = surroundings.now()
            try recorder(UniqueID.random().description).note(
                error,
                about: stream,
                of: app,
                now: now
            )
            throw ExtensionGatewayFailure("\(error)")
        }
        let recorded = try recorder(response.requestID).record(response, about: stream)
        guard let rejection = recorded.rejected.first else { return response }
        throw ExtensionGatewayFailure(
            "Apple's answer does not verify: \(rejection.reason.rawValue)"
        )
    }

    // MARK: - Changing

    package func extend(_ id: String, _ order: ExtensionOrder, in app: AppKey) -> ExtensionReply {
        send(
            .extendRenewalDate(
                originalTransactionID: id,
                RenewalExtension(
                    days: order.days,
                    reason: order.reason.code,
                    requestIdentifier: order.request.description
                )
            ),
            app
        )
    }

    package func extendAll(
        of product: String,
        storefronts: [String],
        _ order: ExtensionOrder,
        in app: AppKey
    ) -> ExtensionReply {
        send(
            .extendRenewalDates(
                MassRenewalExtension(
                    days: order.days,
                    reason: order.reason.code,
                    requestIdentifier: order.request,
                    productID: product,
                    storefronts: storefronts.isEmpty ? nil : storefronts
                )
            ),
            app
        )
    }

    package func massStatus(
        of product: String,
        request: UniqueID,
        in app: AppKey
    ) -> ExtensionReply {
        send(.extensionStatus(productID: product, requestIdentifier: request), app)
    }

    private func send(_ endpoint: APIEndpoint, _ app: AppKey) -> ExtensionReply {
        guard let account = clients.account(app) else {
            return ExtensionReply(
                httpStatus: nil,
                failure: Self.keyless(app).description,
                wasNotSent: true
            )
        }
        let client = account.client.with(
            attemptsMax: Self.changingPatience.attemptsMax,
            waitMax: Self.changingPatience.waitMax
        )
        let start = surroundings.now()
        do throws(AppStoreAPIError) {
            let response = try client.send(endpoint)
            return ExtensionReply(
                httpStatus: response.status,
                body: response.body,
                latency: latency(since: start)
            )
        } catch {
            let until = error.retryAt.map { "; not before \($0)" } ?? ""
            return ExtensionReply(
                httpStatus: error.status,
                body: error.body,
                failure: error.message + until,
                wasNotSent: error.status == nil && !error.mayHaveHadEffect,
                latency: latency(since: start)
            )
        }
    }

    private func latency(since start: Timestamp) -> Milliseconds {
        Milliseconds(rawValue: max(0, surroundings.now().milliseconds - start.milliseconds))
    }

    private static func keyless(_ app: AppKey) -> ExtensionGatewayFailure {
        ExtensionGatewayFailure("there is no key for \(app.bundleID) in \(app.environment)")
    }
}

extension ExtensionReason {
    /// The number that is sent to Apple.
    fileprivate var code: ExtendReasonCode {
        switch self {
        case .undeclared: .undeclared
        case .customerSatisfaction: .customerSatisfaction
        case .other: .other
        case .serviceIssue: .serviceIssue
        }
    }
}
