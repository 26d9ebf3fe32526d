internal import Ledger

extension RandomStream {
    /// The stream as Swift that makes it again, for a test of its own.
    var swiftText: String {
        var lines = [
            "var stream = RandomStream(events: [], rules: AppRules(environment: .production))"
        ]
        let plain = AppRules(environment: .production)
        if rules != plain { lines.append("// with \(rules)") }
        for event in events { lines += event.fact.swiftLines + ["stream.add(fact)"] }
        return lines.joined(separator: "\n")
    }
}

extension Fact {
    fileprivate var swiftLines: [String] {
        var lines = [
            "fact = Fact(kind: EventKind(\"\(kind)\"), provenance: .\(provenance), "
                + "factAt: \(swiftText(factAt)))"
        ]
        let plain = Fact(kind: kind, provenance: provenance, factAt: factAt)
        lines += difference(self, plain, "fact.") { label in
            !["transaction", "renewal", "trigger"].contains(label) && !label.hasPrefix("has")
        }
        if let transaction {
            let plain = TransactionFact(
                transactionID: transaction.transactionID,
                signedDate: transaction.signedDate,
                digest: transaction.digest
            )
            lines.append(
                "fact.transaction = TransactionFact(transactionID: "
                    + "AppleID(\"\(transaction.transactionID)\"), "
                    + "signedDate: \(swiftText(transaction.signedDate)), "
                    + "digest: \(transaction.digest))"
            )
            lines += difference(transaction, plain, "fact.transaction?.") { _ in true }
        }
        if let renewal {
            let plain = RenewalFact(signedDate: renewal.signedDate, digest: renewal.digest)
            lines.append(
                "fact.renewal = RenewalFact(signedDate: \(swiftText(renewal.signedDate)), "
                    + "digest: \(renewal.digest))"
            )
            lines += difference(renewal, plain, "fact.renewal?.") { _ in true }
        }
        return lines
    }
}

/// An assignment for each field in which a value differs from a plain one.
private func difference<Value>(
    _ value: Value,
    _ plain: Value,
    _ prefix: String,
    where isShown: (String) -> Bool
) -> [String] {
    zip(Mirror(reflecting: value).children, Mirror(reflecting: plain).children)
        .compactMap { child, plain in
            guard let label = child.label.map(propertyName), label != "unknowns", isShown(label)
            else { return nil }
            let text = swiftText(child.value)
            return text == swiftText(plain.value) ? nil : "\(prefix)\(label) = \(text)"
        }
}

/// The property that a stored one stands behind: packed, or with a setter that takes notes.
private func propertyName(_ stored: String) -> String {
    if stored.hasPrefix("_") { return String(stored.dropFirst()) }
    guard stored.hasPrefix("stored") else { return stored }
    let name = stored.dropFirst("stored".count)
    return name.prefix(1).lowercased() + name.dropFirst()
}

/// A value as Swift spells it.
private func swiftText(_ value: Any) -> String {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional {
        return mirror.children.first.map { swiftText($0.value) } ?? "nil"
    }
    switch value {
    case let packed as Packed<Timestamp>: return swiftText(packed.wrappedValue as Any)
    case let packed as Packed<Symbol>: return swiftText(packed.wrappedValue as Any)
    case let packed as Packed<AppleID>: return swiftText(packed.wrappedValue as Any)
    case let instant as Timestamp:
        let days = Double(instant.milliseconds - Life.t0.milliseconds) / 86_400_000
        return days == days.rounded() && abs(days) < 10_000
            ? "Life.day(\(Int(days)))" : "Timestamp(milliseconds: \(instant.milliseconds))"
    case let symbol as Symbol: return "\"\(symbol)\""
    case let id as AppleID: return "AppleID(\"\(id)\")"
    case let id as UniqueID: return "UniqueID(\"\(id)\")"
    case let word as any OpenVocabulary: return "\(type(of: value))(\"\(word)\")"
    case let answer as ExtensionAnswer:
        return "ExtensionAnswer(success: \(answer.success), "
            + "effectiveDate: \(swiftText(answer.effectiveDate as Any)))"
    default: return "\(value)"
    }
}
