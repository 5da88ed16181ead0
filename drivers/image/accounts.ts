// The user of an image. Inside of its sandbox a program has the user and group id that the image names; outside it is
// the user of the application, who owns all files of it, and `root` becomes an ordinary user: it could do nothing that
// root can, and programs that find themselves root would try to. Where the host has a range of user ids for the image,
// programs see the real root of the image, and each of its users has a separate id on the host.
import { lstat, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ImageSettings } from '../../core/protocols/image_settings';
import { broken } from './manifest';
import { LAST_ID, type UserRange } from './owners';
import { replaceText, resolveInside } from './root';
import { openSafeTree, type SafeTree } from './safe_tree';

const BYTES_MAX = 1024 * 1024;
const ORDINARY = { uid: 1000, gid: 1000 };
const ID_MAX = 2_147_483_647;
const GROUPS_MAX = 64;

interface Account {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

/** Whether a range of user ids has the user of an image that names it by a number. A name is not known before. */
export function isInRange(wanted: string): boolean {
  return wanted.split(':').every((id) => !/^\d+$/.test(id) || Number(id) <= LAST_ID);
}

/** Finds the user of the image, and gives it a line in /etc/passwd where it has none. @throws ImageError */
export async function settleUser(
  root: string,
  wanted: string,
  range: UserRange | null,
): Promise<ImageSettings['user']> {
  const [user = '', group = ''] = wanted.split(':');
  const passwd = await readInside(root, 'etc/passwd');
  const accounts = accountsOf(passwd);
  const found = user === '' ? undefined : accounts.find(({ name, uid }) => name === user || String(uid) === user);
  if (!found && user !== '' && !/^\d{1,10}$/.test(user)) throw broken(`it has no user \`${user.slice(0, 64)}\``);
  const uid = found?.uid ?? Number(user);
  if (uid === 0 && range === null) return ordinaryUser(root, passwd, accounts);
  const gid = group === '' ? (found?.gid ?? 0) : await groupOf(root, group);
  if (Math.max(uid, range === null ? 0 : gid) > (range === null ? ID_MAX : LAST_ID))
    throw broken('its user id is too large');
  const account = found ?? accounts.find((one) => one.uid === uid);
  const settled = { name: account?.name ?? (uid === 0 ? 'root' : 'app'), uid, gid, home: account?.home ?? '/' };
  if (!account) await addAccount(openSafeTree(root, range), passwd, settled);
  const groups = range === null || group !== '' || !account ? [] : await groupsOf(root, account.name);
  return groups.length === 0 ? settled : { ...settled, groups };
}

async function ordinaryUser(root: string, passwd: string, accounts: Account[]): Promise<Account> {
  const there = accounts.find(({ uid }) => uid === ORDINARY.uid);
  const home = accounts.find(({ uid }) => uid === 0)?.home ?? '/';
  const settled = { ...ORDINARY, name: there?.name ?? 'app', home };
  if (!there) await addAccount(openSafeTree(root, null), passwd, settled);
  return settled;
}

async function addAccount(tree: SafeTree, passwd: string, { name, uid, gid, home }: Account): Promise<void> {
  const before = passwd === '' || passwd.endsWith('\n') ? passwd : `${passwd}\n`;
  const line = `${name}:x:${uid}:${gid}::${home.replaceAll(/[:\n]/g, '')}:/bin/sh\n`;
  await replaceText(tree, 'etc/passwd', before + line);
}

/** Further groups of a user, as Docker gives them where the image names no group itself. */
async function groupsOf(root: string, user: string): Promise<number[]> {
  const lines = (await readInside(root, 'etc/group')).split('\n').map((line) => line.split(':'));
  const all = lines.filter(([, , , members = '']) => members.split(',').includes(user)).map(([, , gid]) => Number(gid));
  return all.filter((gid) => Number.isInteger(gid) && gid >= 0 && gid <= LAST_ID).slice(0, GROUPS_MAX);
}

async function groupOf(root: string, group: string): Promise<number> {
  if (/^\d{1,9}$/.test(group)) return Number(group);
  const lines = (await readInside(root, 'etc/group')).split('\n').map((line) => line.split(':'));
  const gid = Number(lines.find(([name]) => name === group)?.[2] ?? NaN);
  if (!Number.isInteger(gid) || gid < 0 || gid > ID_MAX) throw broken(`it has no group \`${group.slice(0, 64)}\``);
  return gid;
}

function accountsOf(passwd: string): Account[] {
  return passwd.split('\n').flatMap((line) => {
    const [name = '', , uid = '', gid = '', , home = ''] = line.split(':');
    const isAccount = name !== '' && /^\d{1,10}$/.test(uid) && /^\d{1,10}$/.test(gid);
    return isAccount ? [{ name, uid: Number(uid), gid: Number(gid), home: home || '/' }] : [];
  });
}

/** The text of a file, links followed within the root; empty where there is none, or it is none of text. */
async function readInside(root: string, name: string): Promise<string> {
  const at = path.join(root, ...(await resolveInside(root, name.split('/'))));
  const found = await lstat(at).catch(() => null);
  return found?.isFile() && found.size <= BYTES_MAX ? readFile(at, 'utf8') : '';
}
