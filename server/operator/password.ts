// Passwords come from standard input or are made here: never from the command line, which other users of the machine
// can read.
import { randomBytes } from 'node:crypto';
import { passwordProblem } from '../../core/accounts/passwords';
import { CommandError } from '../command_error';
import { type Input, type Option } from './command';

export const passwordOption: Record<string, Option> = {
  'password-stdin': {
    value: null,
    description: 'Read the password from standard input; without it one is made and shown once.',
  },
};

const MADE_BYTES = 15;

/**
 * @param own e-mail and name of the user, which a password must not be
 * @returns `made` is the password to show, where it was made here @throws CommandError for one that is too short,
 * too long or easily guessed
 */
export async function choosePassword(
  input: Input,
  own: readonly string[],
): Promise<{ password: string; made: { password?: string } }> {
  if (!input.has('password-stdin')) {
    const password = randomBytes(MADE_BYTES).toString('base64url');
    return { password, made: { password } };
  }
  const password = (await readAll(process.stdin)).replace(/\r?\n$/, '');
  const wrong = passwordProblem(password, own);
  if (wrong) throw new CommandError(`the password ${wrong.detail}`);
  return { password, made: {} };
}

async function readAll(stream: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
