// Commands that are named to a person work where the person is: they get the flags that this command was given.
import { shellWord } from './shell_word';

interface Target {
  readonly app?: string | undefined;
  readonly project?: string | undefined;
}

let target: Target = {};

/** What the flags of the command say it is about. */
export function noteTarget({ app, project }: Target): void {
  target = { app, project };
}

const OF_APPLICATION = 'restart|logs|scale|deployments|cancel|attachments|previews|deploy|up|run';
const OF_PROJECT = 'bin|db|volumes|buckets|init';
const COMMAND = new RegExp(`((?:^|: )svc (?:(${OF_APPLICATION})|${OF_PROJECT})\\b.*?)( -- .*)?$`, 'gm');

/** A text whose lines may end with a command of `svc`. */
export function completeHint(text: string): string {
  const { app, project } = target;
  return text.replace(COMMAND, (whole, command: string, isOfApp: string | undefined, rest = '') => {
    if (command.includes(' --app ') || command.includes(' --project ')) return whole;
    const flags = [isOfApp && app && `--app ${shellWord(app)}`, project && `--project ${shellWord(project)}`];
    return [command, ...flags.filter(Boolean)].join(' ') + rest;
  });
}
