internal import Glibc

/// What the program knows of the terminal it writes to.
enum Terminal {
    /// Whether standard output is a terminal.
    static var isOutput: Bool { isatty(1) == 1 }

    /// Whether standard error is a terminal.
    static var isError: Bool { isatty(2) == 1 }

    /// How many columns are to be used: what the terminal has, at least 60; 120 without one.
    static var columns: Int {
        var size = winsize()
        for descriptor: Int32 in [1, 2] {
            if unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 {
                return max(60, Int(size.ws_col))
            }
        }
        return 120
    }

    /// Whether a terminal shows colours and bold: unless `NO_COLOR` or a dumb one says no.
    private static var hasStyles: Bool {
        environment("NO_COLOR") == nil && environment("TERM") != "dumb"
    }

    private static var showsStyles: Bool { isOutput && hasStyles }

    /// The text in bold where styles are shown.
    static func bold(_ text: String) -> String {
        showsStyles ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }

    /// The text in a faint colour where styles are shown.
    static func dim(_ text: String) -> String { showsStyles ? faint(text) : text }

    /// The text in a faint colour where standard error shows styles.
    static func dimError(_ text: String) -> String { isError && hasStyles ? faint(text) : text }

    private static func faint(_ text: String) -> String { "\u{1B}[2m\(text)\u{1B}[0m" }
}

/// The value of an environment variable, nil when it is unset or empty.
func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
}

/// Unsets the environment variables whose names begin with a prefix; only while there is one thread.
func forgetEnvironment(prefix: String) {
    var names: [String] = []
    var place = unsafe environ
    while let entry = unsafe place.pointee {
        let text = unsafe String(cString: entry)
        if text.hasPrefix(prefix) { names.append(String(text.prefix { $0 != "=" })) }
        unsafe place += 1
    }
    for name in names { unsafe unsetenv(name) }
}

/// Waits.
func sleep(milliseconds: Int) { usleep(UInt32(milliseconds) * 1000) }
