public import Ledger

/// When a server says that it wants to be asked again.
public enum RetryAfter {
    /// Reads the value of a `Retry-After` header.
    ///
    /// Apple sends an instant in milliseconds since 1970, which a stock HTTP client takes for
    /// seconds to wait. What other servers and proxies send is understood as well: an instant in
    /// seconds, seconds to wait, or a date. Nil for anything else.
    public static func instant(_ text: String?, now: Timestamp) -> Timestamp? {
        guard let text else { return nil }
        let value = text.filter { $0 != " " && $0 != "\t" }
        guard let number = Int64(value), number >= 0 else { return HTTPDate.instant(text) }
        // The year 2001 in seconds, and 1973 in milliseconds: no wait is as long.
        if number >= 100_000_000_000 { return Timestamp(milliseconds: number) }
        if number >= 1_000_000_000 { return Timestamp(milliseconds: number * 1000) }
        return now.adding(Milliseconds(rawValue: number * 1000))
    }
}

/// The dates of HTTP, `Sun, 06 Nov 1994 08:49:37 GMT`.
public enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Reads the one form that is sent today; nil for anything else.
    public static func instant(_ text: String?) -> Timestamp? {
        guard let text else { return nil }
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT",
            let month = months.firstIndex(of: String(parts[2])), parts[1].utf8.count == 2
        else { return nil }
        let number = month + 1
        return Timestamp(
            parsing: "\(parts[3])-\(number < 10 ? "0" : "")\(number)-\(parts[1])T\(parts[4])Z"
        )
    }

    /// Writes an instant.
    public static func text(_ instant: Timestamp) -> String {
        let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let text = instant.description
        let fields = text.split { $0 == "-" || $0 == "T" || $0 == "." }
        let day = names[Int(max(0, instant.milliseconds) / 86_400_000 % 7)]
        let month = months[(Int(fields[1]) ?? 1) - 1]
        return "\(day), \(fields[2]) \(month) \(fields[0]) \(fields[3]) GMT"
    }
}
