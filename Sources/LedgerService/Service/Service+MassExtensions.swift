internal import EventLog
internal import HTTP
internal import Ledger
internal import Postgres

/// Mass extensions over HTTP.
extension Service {
    /// `POST /v1/mass-extensions`: asks for an extension of all active subscribers of a product.
    func requestMassExtension(_ request: HTTPRequest, _ actor: ExtensionActor) throws -> Answer {
        let body = try RequestBody(
            request,
            allowing: [
                "bundle_id", "environment", "product_id", "storefronts", "days", "reason", "ticket",
                "note", "internal_reason", "ticket_url", "incident_id", "on_behalf_of", "dry_run",
                "again",
            ]
        )
        var wish = MassExtensionWish(
            bundleID: try body.needed("bundle_id"),
            environment: try body.text("environment").map(Self.environment) ?? .production,
            productID: try body.needed("product_id"),
            storefronts: try body.texts("storefronts") ?? [],
            wish: try Self.wish(body, subscription: "", request)
        )
        wish.wish.again = try body.bool("again") ?? false
        var actor = actor
        actor.onBehalfOf = try body.text("on_behalf_of")
        return atTheDesk { [wish, actor] in try $0.requestMass(wish, by: actor) }
    }

    /// `GET /v1/mass-extensions/{request}`: how far one is, as Apple last said; the service asks
    /// Apple by itself.
    func massExtension(_ request: HTTPRequest) throws -> Answer {
        _ = try Parameters(request, allowing: [])
        let id = try Self.requestIdentifier(request)
        return desk.answer { [self] connection in
            let result: ExtensionResult
            do {
                result = try desk(over: connection).status(of: id)
            } catch let problem as ExtensionProblem {
                throw Self.problem(problem)
            }
            guard result.subscription.hasPrefix("mass:") else {
                throw ServiceProblem.notFound("\(id) is a request for one subscription")
            }
            let rows = try connection.query(
                """
                select product_id, array_to_string(storefronts, ','), complete, complete_date,
                    status_asked_at, succeeded_count, failed_count, own_succeeded_count,
                    own_failed_count
                from read_model.mass_extension where request_identifier = $1
                """,
                [.uuid(id.bits)]
            )
            var json = JSONWriter()
            json.beginObject()
            json.key("request")
            result.write(to: &json)
            // A moment after it was asked for the read models may not show it yet.
            let isShown = rows.count == 1
            json.member("product_id", isShown ? rows.text(0, 0) : nil)
            json.key("storefronts")
            json.beginArray()
            for code in (isShown ? rows.text(0, 1) : nil)?.split(separator: ",") ?? [] {
                json.string(String(code))
            }
            json.endArray()
            json.member("complete", isShown && rows.bool(0, 2) == true)
            json.member("complete_date", isShown ? rows.timestamp(0, 3) : nil)
            json.member("status_asked_at", isShown ? rows.timestamp(0, 4) : nil)
            let counts = [
                "succeeded_count", "failed_count", "own_succeeded_count", "own_failed_count",
            ]
            for (place, name) in counts.enumerated() {
                json.member(name, isShown ? rows.int(0, place + 5) : nil)
            }
            json.endObject()
            return .json(json.text)
        }
    }
}
