internal import Crypto
internal import Glibc
internal import Postgres

/// The command line.
@main
enum Main {
    static func main() {
        occupyStandardDescriptors()
        LibraryEnd.isLeftToTheSystem()
        Interruption.install()
        let status = Program.run(Array(words.dropFirst()))
        if Interruption.decidesExit { exit(Interruption.exitStatus) }
        exit(status.rawValue)
    }

    /// Keeps the numbers of closed standard streams from files and pipes of our own.
    ///
    /// They are opened the wrong way round: who reads or writes there is told that it cannot be.
    private static func occupyStandardDescriptors() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest number that is free is taken.
            _ = unsafe open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    /// The program's name and what follows it.
    ///
    /// Swift looks for them beside the environment, where they are no more once a library that was
    /// loaded before the program (libfaketime, some profilers) has set a variable: it finds none.
    private static var words: [String] {
        let words = CommandLine.arguments
        guard words.isEmpty, let text = FileSystem.text("/proc/self/cmdline", limitBytes: 1 << 21)
        else { return words }
        return text.split(separator: "\0", omittingEmptySubsequences: false)
            .dropLast().map(String.init)
    }
}
