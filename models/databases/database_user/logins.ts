// Names and passwords that a server accepts for a user. During a rotation there are two passwords. MariaDB and Redis
// support several per user. PostgreSQL supports one, so the new password gets a second login there, with the same
// rights: the user's name with a numeric suffix, which user names cannot have.

interface Rotation {
  username: string;
  /** In plain. */
  password: string;
  login: string | null;
  /** In plain; null where there is no rotation. */
  previous_password: string | null;
  previous_login: string | null;
}

interface ServerLogin<Access> {
  username: string;
  password: string;
  access: Access;
  /** Valid too. */
  previous_password?: string;
  /** The user of which this is a second login, equal to the first in everything. */
  second_of?: string;
}

/** The login of the present password. After a rotation, the user's own name accepts it too. */
export function loginOf(user: Pick<Rotation, 'username' | 'login'> & { previous_password: string | null }): string {
  return user.previous_password === null ? user.username : (user.login ?? user.username);
}

/** The login for the next password: never the one in use, since attachments connect with it. */
export function nextLogin(engine: string, { username, login }: Pick<Rotation, 'username' | 'login'>): string | null {
  if (engine !== 'postgresql') return null;
  return login === `${username}.1` ? `${username}.2` : `${username}.1`;
}

/** Every login that the server should have for the user. */
export function serverLogins<Access>(user: Rotation & { access: Access }): ServerLogin<Access>[] {
  const { username, password, login, access, previous_password, previous_login } = user;
  const named = (names: (string | null)[], secret: string): ServerLogin<Access>[] =>
    names.flatMap((name) => {
      if (name === null) return [];
      return [{ username: name, password: secret, access, ...(name !== username && { second_of: username }) }];
    });
  if (previous_password === null) return named([username, login], password);
  if (login === null) return [{ username, password, access, previous_password }];
  return [...named([username, previous_login], previous_password), ...named([login], password)];
}
