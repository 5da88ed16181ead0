// The entry: what needs no command is answered before anything else is loaded. The rest is in the same file, but runs
// when it is imported.
import { rootHelp } from './root_help';

// A reader that has enough (`svc logs | head`) ends the command without a word.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(0);
  });

const given = process.argv.slice(2);
const [first, second] = given;
if (first === '--version' || first === '-v') print(SVC_VERSION);
else if (first === undefined || first === '--help' || first === '-h' || (first === 'help' && second === undefined))
  print(rootHelp());
else void import('./program').then(({ runCommand }) => runCommand(given));

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
