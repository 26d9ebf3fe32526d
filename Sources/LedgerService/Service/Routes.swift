internal import AppStore
internal import HTTP
internal import Ledger
internal import Postgres

extension Service {
    /// Where notifications are delivered.
    static let notificationsPath = "/v1/notifications"

    /// Where Prometheus reads.
    static let metricsPath = "/metrics"

    /// Everything that can be asked.
    ///
    /// The service is looked up at each request, since the routes are made before it.
    static func routes(_ service: @escaping @Sendable () -> Service?) -> [Route] {
        func open(
            _ method: HTTPMethod,
            _ path: String,
            bodyLimitBytes: Int = 0,
            contentTypes: [String] = [],
            _ handler: @escaping @Sendable (Service, HTTPRequest) throws -> Answer
        ) -> Route {
            Route(method, path, bodyLimitBytes: bodyLimitBytes, contentTypes: contentTypes) {
                request in
                guard let service = service() else {
                    return .answer(.problem(ServiceProblem.busy.problem).retrying(after: 1))
                }
                do { return try handler(service, request) } catch let problem as ServiceProblem {
                    return .answer(.problem(problem.problem))
                } catch {
                    return .answer(ServiceProblem.response(to: error))
                }
            }
        }
        func query(
            _ path: String,
            _ roles: Set<APIToken.Role> = Set(APIToken.Role.allCases),
            _ handler: @escaping @Sendable (Service, HTTPRequest, APIToken.Role) throws -> Answer
        ) -> Route {
            open(.get, path) { service, request in
                switch service.admission(of: request, roles) {
                case .refused(let response): .answer(response)
                case .admitted(_, let role): try handler(service, request, role)
                }
            }
        }
        func act(
            _ method: HTTPMethod,
            _ path: String,
            _ roles: Set<APIToken.Role>,
            _ handler: @escaping @Sendable (Service, HTTPRequest, ExtensionActor) throws -> Answer
        ) -> Route {
            open(
                method,
                path,
                bodyLimitBytes: method == .get ? 0 : extensionBodyMaxBytes,
                contentTypes: method == .get ? [] : ["application/json"]
            ) { service, request in
                switch service.admission(of: request, roles) {
                case .refused(let response): return .answer(response)
                case .admitted(let id, let role):
                    let actor = ExtensionActor(
                        tokenName: service.gatekeeper.name(ofToken: id) ?? id,
                        id: id,
                        role: role.rawValue,
                        address: service.client(request).description
                    )
                    return try handler(service, request, actor)
                }
            }
        }
        return [
            open(
                .post,
                notificationsPath,
                bodyLimitBytes: Webhook.bodySizeMaxBytes,
                contentTypes: ["application/json"]
            ) { $0.receive($1) },
            open(.get, "/openapi.json") { _, _ in .answer(Self.document) },
            open(.get, "/healthz") { _, _ in .answer(.json("{\"status\":\"ok\"}")) },
            open(.get, "/readyz") { service, _ in .answer(service.readiness()) },
            query(metricsPath) { service, _, _ in service.metrics() },
            query("/v1/entitlements") { service, request, _ in try service.entitlements(request) },
            query("/v1/billing-recovery") { service, request, _ in
                try service.billingRecovery(request)
            },
            query("/v1/churn") { service, request, _ in try service.churn(request) },
            query("/v1/subscriptions/{id}/explanation") { try $0.explanation($1, for: $2) },
            query("/v1/subscriptions/{id}/events") { try $0.subscriptionEvents($1, for: $2) },
            query("/v1/events") { try $0.events($1, for: $2) },
            query("/v1/events/{position}/evidence", [.auditor]) { service, request, _ in
                try service.evidence(request)
            },
            act(.get, "/v1/extensions", [.auditor]) { try $0.extensionAudit($1, $2) },
            act(.post, "/v1/extensions", [.operator]) { try $0.requestExtension($1, $2) },
            act(.post, "/v1/extensions/{request}/decision", [.operator]) {
                try $0.decideExtension($1, $2)
            },
            act(.post, "/v1/extensions/{request}/resolution", [.operator]) {
                try $0.resolveExtension($1, $2)
            },
            act(.post, "/v1/mass-extensions", [.operator]) {
                try $0.requestMassExtension($1, $2)
            },
            act(.get, "/v1/mass-extensions/{request}", [.operator, .auditor]) {
                service,
                request,
                _ in try service.massExtension(request)
            },
        ]
    }

    /// The OpenAPI document of these routes, `openapi.json` beside this file.
    static var documentBytes: [UInt8] { PackageResources.openapi_json }

    private static var document: HTTPResponse {
        HTTPResponse(
            status: 200,
            contentType: "application/json",
            headers: ["Cache-Control": "no-cache"],
            body: documentBytes
        )
    }

    // MARK: - Who may

    /// Whether a request may ask.
    private enum RequestAdmission {
        case admitted(id: String, APIToken.Role)
        case refused(HTTPResponse)
    }

    /// The address that a request came from, as far as it is sure.
    func client(_ request: HTTPRequest) -> IPAddress {
        ForwardedFor.client(
            peer: request.peer,
            values: request.headers.all("X-Forwarded-For"),
            trusted: options.trustedProxies
        )
    }

    private func admission(
        of request: HTTPRequest,
        _ roles: Set<APIToken.Role>
    ) -> RequestAdmission {
        let verdict = gatekeeper.judge(
            authorization: request.headers["Authorization"],
            address: client(request).description,
            // What the process counts names no subscriber, and is wanted most while the database
            // is away.
            ageMaxAway: request.route == Self.metricsPath
                ? .seconds(86_400) : Gatekeeper.ageMaxAway
        )
        switch verdict {
        case .admitted(let id, let role):
            guard !roles.contains(role) else { return .admitted(id: id, role) }
            let wanted = roles.map(\.rawValue).sorted().joined(separator: " or ")
            return .refused(.problem(ServiceProblem.forbidden(wanted).problem))
        case .unknown:
            var response = HTTPResponse.problem(ServiceProblem.unauthorized.problem)
            response.headers["WWW-Authenticate"] = "Bearer"
            return .refused(response)
        case .tooMany(let seconds):
            return .refused(.problem(ServiceProblem.tooMany.problem).retrying(after: seconds))
        case .unavailable:
            return .refused(
                .problem(ServiceProblem.databaseUnavailable.problem).retrying(after: 5)
            )
        }
    }

    // MARK: - Deliveries

    private func receive(_ request: HTTPRequest) -> Answer {
        let address = client(request)
        guard options.deliverers.isEmpty || options.deliverers.contains(address: address) else {
            return .answer(.problem(ServiceProblem.address.problem))
        }
        let pending = PendingResponse()
        webhook.receive(request.body, from: address.description) { answer in
            pending.complete(Self.response(answer))
        }
        return .later(pending)
    }

    private static func response(_ answer: Webhook.Answer) -> HTTPResponse {
        guard answer.status != 200 else {
            var json = JSONWriter()
            json.beginObject()
            json.member("outcome", answer.reason)
            json.member("position", answer.position)
            json.endObject()
            return .json(json.text)
        }
        let problem = Problem(
            status: answer.status,
            reason: answer.reason,
            title: answer.status == 503
                ? "The notification could not be judged or stored now; send it again."
                : "The notification can never be accepted.",
            detail: answer.detail
        )
        let response = HTTPResponse.problem(problem)
        return answer.retryAfterSeconds.map { response.retrying(after: $0) } ?? response
    }

    // MARK: - How it is doing

    /// 200 where deliveries can be stored and questions answered.
    private func readiness() -> HTTPResponse {
        var problems: [String] = []
        if isStopping { problems.append("stopping") }
        if committer.isAway { problems.append("database_unavailable") }
        if let failure = projection.condition.failure {
            problems.append(failure.code == .outOfDate ? "out_of_date" : "projection_failing")
        }
        var json = JSONWriter()
        json.beginObject()
        json.member("status", problems.isEmpty ? "ready" : "not_ready")
        json.key("problems")
        json.beginArray()
        for problem in problems { json.string(problem) }
        json.endArray()
        json.endObject()
        return .json(json.text, status: problems.isEmpty ? 200 : 503)
    }
}
