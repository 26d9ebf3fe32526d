internal import AppStore
internal import Crypto
internal import EventLog
public import Ledger
internal import Postgres

/// What an operator wants extended for all active subscribers of a product.
public struct MassExtensionWish: Hashable, Sendable {
    /// The app.
    public var bundleID: String
    /// Which of Apple's servers.
    public var environment: Environment
    /// The product.
    public var productID: String
    /// The storefronts as ISO 3166-1 alpha-3; empty for all.
    public var storefronts: [String] = []
    /// What is the same as for one subscription; its `subscription` says nothing.
    public var wish: ExtensionWish

    /// Wishes for a mass extension.
    public init(
        bundleID: String,
        environment: Environment,
        productID: String,
        storefronts: [String],
        wish: ExtensionWish
    ) {
        self.bundleID = bundleID
        self.environment = environment
        self.productID = productID
        self.storefronts = storefronts
        self.wish = wish
    }
}

extension Extensions {
    /// Asks for an extension of all active subscribers of a product.
    ///
    /// - Returns: what became of it; the totals come later, see `massStatus`.
    /// - Throws: `ExtensionProblem` where nothing is recorded; `EventLogError`.
    public func requestMass(
        _ wish: MassExtensionWish,
        by actor: ExtensionActor
    ) throws -> ExtensionResult {
        try check(wish.wish, actor)
        try check(wish.productID, "product", 200)
        for storefront in wish.storefronts {
            let isCode = storefront.utf8.count == 3 && storefront.utf8.allSatisfy { 65...90 ~= $0 }
            guard isCode else {
                throw ExtensionProblem.unusable(
                    field: "storefront",
                    want: "three letters such as USA, not “\(storefront.prefix(20))”"
                )
            }
        }
        let app = AppKey(bundleID: wish.bundleID, environment: wish.environment)
        guard let known = try LogReader(reading).apps().first(where: { $0.value == app }) else {
            throw ExtensionProblem.unknownSubscription(wish.bundleID)
        }
        for _ in 0..<Self.attempts {
            if let before = try massReplay(wish, actor) { return before }
            do {
                return try decideMass(wish, of: app, known.key, by: actor)
            } catch let error as EventLogError {
                // The same request came twice at a time, or another mass extension was asked for.
                guard error.code == .stale else { throw error }
            }
        }
        throw EventLogError(.temporary, "mass extensions are asked for again and again; try later")
    }

    private func decideMass(
        _ wish: MassExtensionWish,
        of app: AppKey,
        _ appID: Int32,
        by actor: ExtensionActor
    ) throws -> ExtensionResult {
        // Read first: what is asked for after it is news.
        let quiet = Appender.Quiet(
            .massExtensionRequested,
            of: appID,
            after: try reading.query("select position from ledger.head").int(0, 0) ?? 0
        )
        let refusal = try massRefusal(wish, appID)
        let request = Self.massIdentifier(wish, actor)
        var note = ExtensionNote(
            .massExtensionRequested,
            app: app,
            stream: "mass:\(request)",
            request: request,
            at: now()
        )
        fill(&note, wish.wish, actor)
        note[text: "product_id"] = wish.productID
        if !wish.storefronts.isEmpty {
            note[text: "storefronts"] = wish.storefronts.joined(separator: ",")
        }
        note[bool: "fresh_status"] = false
        note[text: "binding"] = Self.binding(of: note)
        if refusal == nil {
            note[text: "approval_rule"] = settings.approvalRule(
                days: wish.wish.days,
                reason: wish.wish.reason,
                used: 0,
                isMass: true
            )
        }
        try pause(.decided)
        var result = ExtensionResult(note, nil)
        if let refusal {
            result.rule = refusal.rawValue
            result.outcome = .refusedLocally
        }
        guard !wish.wish.isDryRun else {
            result.isDryRun = true
            return result
        }
        let isWaiting = note[text: "approval_rule"] != nil
        guard isWaiting || refusal != nil || gateway != nil else {
            throw ExtensionProblem.noGateway
        }
        var notes = [note]
        if let refusal {
            var refused = step(.extensionRefused, of: note)
            actor.sign(&refused)
            refused[text: "rule"] = refusal.rawValue
            notes.append(refused)
        } else if !isWaiting {
            notes.append(submission(of: note, attempt: 1))
        }
        let expected = [SubscriptionKey(appID: appID, stream: note.stream): Int64(0)]
        try append(notes, expecting: expected, quiet: quiet)
        guard let gateway, refusal == nil, !isWaiting else { return result }
        try pause(.requested)
        return try sendMass(note, attempt: 1, through: gateway, result)
    }

    /// Why a mass extension is refused by our own rules: what one of the same product does to the
    /// same subscribers cannot be undone, and Apple does it as often as it is asked.
    private func massRefusal(
        _ wish: MassExtensionWish,
        _ appID: Int32
    ) throws -> ExtensionRule? {
        let others = try ExtensionNote.rows(
            isRequest: true,
            where: "n.kind = 'mass_extension_requested' and n.app_id = $1 and n.product_id = $2",
            [.int(Int64(appID)), .text(wish.productID)],
            reading
        ).map(\.note).filter { other in
            let storefronts = (other[text: "storefronts"] ?? "").split(separator: ",")
            return storefronts.isEmpty || wish.storefronts.isEmpty
                || storefronts.contains { wish.storefronts.contains(String($0)) }
        }
        var isOnTicket = false
        for other in others {
            let outcome = try read(other.request).2.outcome
            switch outcome {
            case .requested, .unknown: return .inProgress
            case .accepted, .confirmed:
                if try isUnderWay(other) { return .inProgress }
                if other[text: "ticket"] == wish.wish.ticket { isOnTicket = true }
            default: break
            }
        }
        return isOnTicket && !wish.wish.again ? .duplicateTicket : nil
    }

    /// Whether Apple has not said that a mass extension is complete, for as long as it is asked.
    private func isUnderWay(_ request: ExtensionNote) throws -> Bool {
        guard now() < request.at.adding(ExtensionSettler.massReach) else { return false }
        let rows = try reading.query(
            """
            select from ledger.extension_step
            where stream = $1 and kind = 'mass_extension_status' and complete
            union all
            select from ledger.event
            where stream = $1 and notification_type = 'RENEWAL_EXTENSION' and subtype = 'SUMMARY'
            limit 1
            """,
            [.text(request.stream)]
        )
        return rows.count == 0
    }

    /// The identifier of a mass request: with a key the same for the same key, so that what comes
    /// twice at a time meets in the log.
    private static func massIdentifier(
        _ wish: MassExtensionWish,
        _ actor: ExtensionActor
    ) -> UniqueID {
        guard let key = wish.wish.idempotencyKey, !wish.wish.isDryRun else { return .random() }
        let parts = [actor.authenticated, wish.bundleID, wish.environment.description, key]
        let text = "mass:" + parts.map { "\($0.utf8.count):\($0)" }.joined()
        let bits = SHA256.digest(Array(text.utf8)).prefix(16).reduce(UInt128(0)) {
            $0 << 8 | UInt128($1)
        }
        // Version 8 of RFC 9562: made by a rule of one's own.
        return UniqueID(bits: bits & ~(0xF << 76) & ~(3 << 62) | 8 << 76 | 2 << 62)
    }

    /// Asks Apple how far a mass extension is, and records what it says.
    ///
    /// For a request without an answer this is what settles it: Apple knows it, or, after a wait,
    /// is told once more under the same identifier, which Apple takes for the same request.
    public func massStatus(_ request: UniqueID) throws -> MassExtensionStanding {
        guard let gateway else { throw ExtensionProblem.noGateway }
        let (asked, _, record) = try read(request)
        guard asked.kind == .massExtensionRequested, record.submitted != nil,
            record.outcome == .accepted || record.outcome == .unknown
        else {
            throw ExtensionProblem.notOpen(
                "there is nothing to ask: it is \(record.outcome.rawValue)"
            )
        }
        let product = asked[text: "product_id"] ?? ""
        let reply = gateway.massStatus(of: product, request: request, in: asked.app)
        let answer = MassExtensionStanding(reply)
        if answer.isKnown {
            if record.outcome == .unknown {
                var settled = step(.extensionResolved, of: asked)
                settled[text: "resolution"] = "extended"
                settled[text: "note"] = "Apple knows the request"
                try append([settled])
            }
            var note = step(.massExtensionStatus, of: asked)
            note[int: "http_status"] = reply.httpStatus.map { Int64($0) }
            keep(reply, in: &note)
            note[bool: "complete"] = answer.isComplete
            note[instant: "complete_date"] = answer.completeDate
            note[int: "succeeded_count"] = answer.succeeded
            note[int: "failed_count"] = answer.failed
            try append([note])
        } else if answer.isUnknownToApple, record.outcome == .unknown, record.attempts < 2,
            now() >= (try lastSent(asked)).adding(settings.resendAfter)
        {
            let attempt = Int64(record.attempts) + 1
            try append([submission(of: asked, attempt: attempt)])
            _ = try sendMass(
                asked,
                attempt: attempt,
                through: gateway,
                ExtensionResult(asked, nil)
            )
        }
        return answer
    }

    /// Sends a mass request that is in the log, and records what came back.
    func sendMass(
        _ request: ExtensionNote,
        attempt: Int64,
        through gateway: any ExtensionGateway,
        _ result: ExtensionResult
    ) throws -> ExtensionResult {
        let order = ExtensionOrder(
            days: Int(request[int: "days"] ?? 0),
            reason: ExtensionReason(rawValue: Int(request[int: "reason_code"] ?? 0)) ?? .undeclared,
            request: request.request
        )
        let storefronts = request[text: "storefronts"]?.split(separator: ",").map(String.init)
        let reply = gateway.extendAll(
            of: request[text: "product_id"] ?? "",
            storefronts: storefronts ?? [],
            order,
            in: request.app
        )
        try pause(.answered)
        let note = answer(reply, to: request, attempt: attempt, gateway.keyID(of: request.app))
        try append([note])
        try pause(.recorded)
        var result = result
        result.take(note)
        return result
    }

    private func massReplay(
        _ wish: MassExtensionWish,
        _ actor: ExtensionActor
    ) throws -> ExtensionResult? {
        guard let key = wish.wish.idempotencyKey else { return nil }
        let found = try ExtensionNote.rows(
            isRequest: true,
            where: "n.idempotency_key = $1 and n.operator_authenticated = $2",
            [.text(key), .text(actor.authenticated)],
            reading
        )
        guard let (_, note) = found.first else { return nil }
        let storefronts = wish.storefronts.joined(separator: ",")
        guard note[text: "product_id"] == wish.productID,
            note.app == AppKey(bundleID: wish.bundleID, environment: wish.environment),
            (note[text: "storefronts"] ?? "") == storefronts,
            note[int: "days"] == Int64(wish.wish.days),
            note[int: "reason_code"] == Int64(wish.wish.reason.rawValue),
            note[text: "ticket"] == wish.wish.ticket,
            note[text: "justification"] == wish.wish.justification
        else { throw ExtensionProblem.idempotencyMismatch }
        var result = try status(of: note.request)
        result.isRepeated = true
        return result
    }
}

/// What Apple says of a mass extension.
public struct MassExtensionStanding: Hashable, Sendable {
    /// Whether Apple knows the request.
    public var isKnown = false
    /// Whether Apple says that it knows no such request.
    public var isUnknownToApple = false
    /// Whether all is done.
    public var isComplete = false
    /// When it was.
    public var completeDate: Timestamp?
    /// How many were extended.
    public var succeeded: Int64?
    /// How many were not.
    public var failed: Int64?
    /// Apple's HTTP status.
    public var httpStatus: Int?
    /// Apple's error, or why there is no answer.
    public var failure: String?

    init(_ reply: ExtensionReply) {
        httpStatus = reply.httpStatus
        failure = reply.failure
        guard let status = reply.httpStatus else { return }
        let document = try? JSONDocument(reply.body)
        guard (200..<300).contains(status), let document else {
            // Any other 404 may be somebody else's than Apple's.
            isUnknownToApple = (try? document?["errorCode"]?.int64()) == 4_040_009
            failure = document?["errorMessage"]?.text ?? reply.failure ?? "HTTP \(status)"
            return
        }
        isKnown = true
        isComplete = document["complete"]?.bool ?? false
        succeeded = (try? document["succeededCount"]?.int64()) ?? nil
        failed = (try? document["failedCount"]?.int64()) ?? nil
        if let date = (try? document["completeDate"]?.int64()) ?? nil {
            completeDate = Timestamp(milliseconds: date)
        }
    }
}
