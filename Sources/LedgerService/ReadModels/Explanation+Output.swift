internal import EventLog
internal import Ledger

extension Explanation {
    /// Writes the explanation as `subledger explain --json` shows it: one object.
    public func write(to json: inout JSONWriter) {
        json.beginObject()
        json.member("original_transaction_id", stream)
        json.member("environment", app.environment.description)
        json.member("bundle_id", app.bundleID)
        json.member("subscription_group_identifier", timeline.last?.subscriptionGroupID)
        json.member("app_account_token", timeline.last?.appAccountToken?.description)
        json.member("app_transaction_id", timeline.last?.appTransactionID)
        json.member("known_to_position", timeline.last?.knownToPosition)
        json.member("is_stale", isStale)
        json.member("parked", parked)
        json.key("anomalies")
        json.beginArray()
        for anomaly in anomalies { json.string(anomaly) }
        json.endArray()
        json.key("refund_request")
        if let refund {
            json.beginObject()
            json.member("requested_at", refund.requestedAt)
            json.member("answer_by", refund.answerBy)
            json.member("decision", refund.decision)
            json.member("reason", refund.reason)
            json.endObject()
        } else {
            json.null()
        }
        known?.writeMembers(to: &json)
        if let at {
            json.member("at", at)
            json.key("answer")
            if let answer { answer.write(to: &json) } else { json.null() }
        }
        json.key("timeline")
        json.beginArray()
        for stretch in timeline {
            json.beginObject()
            stretch.writeState(to: &json, from: stretch.validFrom, until: stretch.validUntil)
            json.member("policy_version", stretch.policyVersion)
            json.member("positions", stretch.positions)
            json.endObject()
        }
        json.endArray()
        writeOwners(to: &json)
        json.key("events")
        json.beginArray()
        for event in events {
            json.beginObject()
            event.writeMembers(to: &json)
            json.endObject()
        }
        json.endArray()
        json.endObject()
    }

    private func writeOwners(to json: inout JSONWriter) {
        json.key("owners")
        json.beginArray()
        for owner in owners {
            json.beginObject()
            json.member("app_account_token", owner.token.description)
            json.member("from", owner.from)
            json.member("until", owner.until)
            json.member("position", owner.position)
            json.member("is_linked", owner.isLinked)
            json.endObject()
        }
        json.endArray()
    }

    /// The explanation as a person reads it: what holds when, and which events say so.
    public var text: String {
        var lines = [
            "Subscription \(stream) of \(app.bundleID) (\(app.environment))",
            heading,
        ]
        if let known { lines.append("  As \(known.sentence).") }
        if let refund { lines.append("  \(refund.sentence)") }
        if let parked { lines.append("  NOT FOLDED: \(parked)") }
        if isStale { lines.append("  Events wait to be folded: this is not the newest.") }
        if let at {
            lines += ["", "At \(at): " + (answer?.sentence ?? "not subscribed yet.")]
        }
        if timeline.isEmpty {
            lines += ["", "It holds no auto-renewable subscription: nothing here grants access."]
        }
        let titles = Dictionary(
            events.map { ($0.position, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        for stretch in timeline {
            let mark = at.map(stretch.contains) == true ? "▶" : " "
            lines += [
                "", "\(mark) \(stretch.validFrom) – \(stretch.validUntil?.description ?? "∞")",
            ]
            lines.append("    \(stretch.sentence)")
            for note in stretch.notes { lines.append("    \(note)") }
            for position in stretch.positions {
                lines.append("      because of \(titles[position]?.line ?? "event \(position)")")
            }
        }
        let deciding = Set(timeline.flatMap(\.positions))
        lines += ["", "Events (* decided something above)"]
        for event in events {
            lines.append("  \(deciding.contains(event.position) ? "*" : " ") \(event.line)")
        }
        // Types, products and reasons are Apple's words, so that none of them ends a line.
        return lines.map { printable($0) + "\n" }.joined()
    }

    private var heading: String {
        var parts: [String] = []
        if let group = timeline.last?.subscriptionGroupID { parts.append("group \(group)") }
        if let owner = owners.last, owner.until == nil { parts.append("owner \(owner.token)") }
        if owners.count > 1 { parts.append("\(owners.count) owners in turn") }
        if let known = timeline.last?.knownToPosition { parts.append("known to event \(known)") }
        if !anomalies.isEmpty { parts.append("odd: " + anomalies.joined(separator: ", ")) }
        return "  " + (parts.isEmpty ? "\(events.count) events" : parts.joined(separator: " · "))
    }
}

extension Explanation.Refund {
    /// What is known of it in one line.
    var sentence: String {
        let why = reason.map { ", for the reason \($0)" } ?? ""
        let asked = "Apple asked on \(requestedAt) about a refund\(why)"
        guard let decision else { return "\(asked); an answer is of use until \(answerBy)." }
        return "\(asked); it was \(decision)."
    }
}

extension EntitlementAnswer {
    /// State, product and access in one line.
    var sentence: String {
        var result = state + (cause.map { " (\($0))" } ?? "")
        if let productID { result += ", \(productID)" }
        if offer != "standard" { result += ", \(offer)" }
        switch (entitledApple, entitled) {
        case (true, true): result += ": access"
        case (false, false): result += ": no access"
        case (false, true): result += ": access by our policy \(policyVersion), not by Apple's line"
        case (true, false): result += ": access by Apple's line, not by our policy \(policyVersion)"
        }
        return result
    }

    /// What else is worth knowing of a stretch.
    var notes: [String] {
        var notes: [String] = []
        if confidence != "confirmed" { notes.append(confidenceNote) }
        if renewalIntent == "off" { notes.append("auto-renew is off") }
        if let pendingProductID { notes.append("changes to \(pendingProductID) with the renewal") }
        if priceConsent == "pending" { notes.append("a price increase waits for consent") }
        if hasBillingTrouble { notes.append("a charge for the next period has failed already") }
        if ownership != "PURCHASED" { notes.append("ownership \(ownership)") }
        return notes
    }

    private var confidenceNote: String {
        switch confidence {
        case "clock": "no news came: only the clock says so"
        case "provisional": "by an unsigned word of Apple's, until a signed one comes"
        case "estimated": "a date is estimated from configuration"
        default: confidence
        }
    }
}

extension StoredEvent {
    /// Position, title and date in one line.
    fileprivate var line: String {
        let at = signedAt.map { "signed \($0)" } ?? "recorded \(recordedAt)"
        let trust =
            switch provenance {
            case .jws: ""
            case .receipt: " (unsigned, from a receipt)"
            case .tls, .operator: " (\(provenance.text))"
            }
        return "#\(position) \(title)\(trust), \(at)"
    }
}
