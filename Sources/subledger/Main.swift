internal import Glibc

/// The command line.
@main
enum Main {
    static func main() {
        Interruption.install()
        let status = Program.run(Array(CommandLine.arguments.dropFirst()))
        if Interruption.decidesExit { exit(Interruption.exitStatus) }
        exit(status.rawValue)
    }
}
