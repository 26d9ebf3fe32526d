internal import EventLog
public import Ledger

extension Extensions {
    /// Approves a request of somebody else's and has it done.
    ///
    /// - Returns: what became of it.
    /// - Throws: `ExtensionProblem`, `.selfApproval` where it is one's own and `.changed` where the
    ///   subscription is not as it was; `EventLogError`.
    public func approve(
        _ request: UniqueID,
        by actor: ExtensionActor,
        note: String? = nil
    ) throws -> ExtensionResult {
        if let note { try checkLines(note, "note", ExtensionWish.justificationMax) }
        let before = try waiting(request, for: actor)
        guard let gateway else { throw ExtensionProblem.noGateway }
        let isFresh = before[bool: "fresh_status"] == true
        if before.kind == .extensionRequested, isFresh {
            do {
                try gateway.refreshStatuses(of: before.stream, in: before.app)
            } catch let error as EventLogError {
                throw error
            } catch {
                throw ExtensionProblem.notOpen("\(ExtensionRule.statusUnavailable.explanation)")
            }
        }
        let (asked, standing, record) = try read(request)
        guard record.outcome == .requested else { throw notWaiting(record) }
        if asked.kind == .extensionRequested {
            var present = asked
            standing.freeze(into: &present)
            guard Self.binding(of: present) == asked[text: "binding"] else {
                throw ExtensionProblem.changed
            }
            if let rule = standing.ineligibility, asked[bool: "attempt_ineligible"] != true {
                throw ExtensionProblem.notOpen(
                    "\(rule.rawValue): \(rule.explanation); reject it"
                )
            }
        }
        let kind: EventKind =
            asked.kind == .massExtensionRequested ? .massExtensionApproved : .extensionApproved
        var approved = step(kind, of: asked)
        actor.sign(&approved)
        approved[text: "requested_by"] = asked[text: "operator_authenticated"]
        approved[text: "binding"] = asked[text: "binding"]
        approved[text: "note"] = note
        try append(
            [approved, submission(of: asked, attempt: 1)],
            expecting: standing.positions
        )
        try pause(.requested)
        let result = ExtensionResult(asked, standing)
        return asked.kind == .massExtensionRequested
            ? try sendMass(asked, attempt: 1, through: gateway, result)
            : try send(asked, attempt: 1, through: gateway, result)
    }

    /// Rejects a request of somebody else's; it will never be sent.
    ///
    /// - Throws: `ExtensionProblem`, `EventLogError`.
    public func reject(
        _ request: UniqueID,
        by actor: ExtensionActor,
        note: String? = nil
    ) throws -> ExtensionResult {
        if let note { try checkLines(note, "note", ExtensionWish.justificationMax) }
        // One's own may be taken back; that needs no second pair of eyes.
        let (asked, standing, record) = try read(request)
        guard record.outcome == .requested else { throw notWaiting(record) }
        let kind: EventKind =
            asked.kind == .massExtensionRequested ? .massExtensionRejected : .extensionRejected
        var rejected = step(kind, of: asked)
        actor.sign(&rejected)
        rejected[text: "rule"] = "rejected"
        rejected[text: "note"] = note
        try append([rejected], expecting: standing.positions)
        return try status(of: request)
    }

    /// A request that waits for somebody who is not its author; that its author tried is recorded.
    private func waiting(_ request: UniqueID, for actor: ExtensionActor) throws -> ExtensionNote {
        let (asked, _, record) = try read(request)
        guard record.outcome == .requested else { throw notWaiting(record) }
        guard actor.isAuthor(of: asked) else { return asked }
        let kind: EventKind =
            asked.kind == .massExtensionRequested
            ? .massExtensionApprovalRefused : .extensionApprovalRefused
        var refused = step(kind, of: asked)
        actor.sign(&refused)
        refused[text: "rule"] = "self_approval"
        try append([refused])
        throw ExtensionProblem.selfApproval
    }

    private func notWaiting(_ record: ExtensionRecord) -> ExtensionProblem {
        .notOpen("the request waits for nobody: it is \(record.outcome.rawValue)")
    }
}
