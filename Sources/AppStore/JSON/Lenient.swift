/// Reading values whose JSON type may be another one than documented.
///
/// What Apple signed is never refused for the type of a field that can be read: identifiers were
/// seen as numbers, numbers and booleans as texts.
enum Lenient {
    /// A text, or the spelling of a number.
    static func text(_ value: JSONValue?) -> String? {
        guard let value else { return nil }
        return value.text ?? value.numberText
    }

    /// A whole number, also spelled within a text; nil for anything else.
    static func integer(_ value: JSONValue?) -> Int64? {
        guard let value else { return nil }
        return try? integerValue(value)
    }

    /// A whole number, also spelled within a text.
    static func integerValue(_ value: JSONValue) throws(AppStoreError) -> Int64 {
        guard value.kind == .string else { return try value.int64() }
        let document: JSONDocument
        do { document = try JSONDocument(value.textBytes ?? []) } catch {
            throw AppStoreError(code: .notAnInteger, message: "the text is no number")
        }
        return try document.root.int64()
    }

    /// True or false, also as a text or as 1 and 0.
    static func bool(_ value: JSONValue) -> Bool? {
        if let bool = value.bool { return bool }
        switch text(value) {
        case "true", "1": return true
        case "false", "0": return false
        default: return nil
        }
    }
}
