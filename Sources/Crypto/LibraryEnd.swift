internal import COpenSSL

/// How the library that verifies ends.
public enum LibraryEnd {
    /// Keeps OpenSSL from taking its tables down when the program exits.
    ///
    /// Threads that still verify then would run into what is gone, and the exit code would be lost.
    /// To be called before anything else is asked of it; the memory goes with the process.
    public static func isLeftToTheSystem() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
