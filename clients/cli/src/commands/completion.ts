// completion: scripts for shells, which ask `svc __complete` for proposals.
import { proposeCompletions, type Application } from '@stricli/core';
import { command, tuple, word, type Shell } from '../command';
import { usageFailure } from '../failure';
import { allOperations } from '../operations/table';
import { writeLine } from '../output/print';

const SCRIPTS: Record<string, string> = {
  // By the line, since bash splits words at : and =, and replaces only what follows the last of them.
  bash: `_svc() {
  local line=\${COMP_LINE:0:COMP_POINT} word
  local -a words
  read -ra words <<<"$line"
  [[ $line == *' ' ]] && words+=('')
  word=\${words[\${#words[@]} - 1]}
  local IFS=$'\\n'
  COMPREPLY=($(svc __complete "\${words[@]:1}" 2>/dev/null))
  COMPREPLY=("\${COMPREPLY[@]#"\${word%"\${word##*[:=]}"}"}")
}
complete -o default -F _svc svc`,
  zsh: `#compdef svc
_svc() {
  local -a found
  found=("\${(@f)$(svc __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -- $found || _files
}
compdef _svc svc`,
  fish: `function __svc_complete
    set -l words (commandline -opc) (commandline -ct)
    svc __complete $words[2..-1] 2>/dev/null
end
complete -c svc -f -a '(__svc_complete)'`,
};

export const completion = command<NonNullable<unknown>, [string]>({
  brief: 'Completion for bash, zsh or fish',
  text:
    'bash: source <(svc completion bash) in ~/.bashrc\n' +
    'zsh:  source <(svc completion zsh) in ~/.zshrc, after compinit\n' +
    'fish: svc completion fish > ~/.config/fish/completions/svc.fish',
  target: 'server',
  output: false,
  args: tuple(word('shell', 'bash, zsh or fish')),
  async run(_, shell) {
    const script = SCRIPTS[shell];
    if (!script) throw usageFailure(`There is no completion for ${shell}.`, 'There is for bash, zsh and fish.');
    writeLine(script);
  },
});

/** Prints what may stand in the place of the last word. */
export async function printCompletions(application: Application<Shell>, words: readonly string[]): Promise<void> {
  const [first, second = ''] = words;
  if (first === 'api' && words.length === 2)
    return allOperations()
      .filter(({ id }) => id.startsWith(second))
      .forEach(({ id }) => writeLine(id));
  const context = { process: { stdout: process.stdout, stderr: process.stderr } };
  const found = await proposeCompletions(application, words, context);
  for (const { completion: proposed } of found) writeLine(proposed);
}
