// Where a release is installed (tools/release/install.sh): a directory for each version, and the link `current`.
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import semver from 'semver';
import { CommandError } from '../command_error';

export interface Installation {
  /** `/opt/platform`. */
  prefix: string;
  /** Of upgrades: the journal, the archive, and the link to the release that carries one out. */
  staging: string;
}

/** This program: <prefix>/<version>/app/dist/server/operator/upgrade. */
const RELEASE = path.resolve(__dirname, '../../../..');

/** @throws CommandError in a checkout or a container */
export function findInstallation(): Installation {
  const installation = installationOrNull();
  if (installation === null)
    throw new CommandError(
      'this is no installed release. Upgrade a checkout by `git pull && npm ci` and a restart, a container by one of ' +
        'the newer image',
    );
  return installation;
}

export function installationOrNull(): Installation | null {
  const prefix = path.dirname(RELEASE);
  const isInstalled = existsSync(path.join(RELEASE, 'VERSION')) && existsSync(path.join(prefix, 'current'));
  return isInstalled ? { prefix, staging: path.join(prefix, '.upgrade') } : null;
}

/** The version to which `current` leads. */
export function currentVersion({ prefix }: Installation): string {
  return path.basename(readlinkSync(path.join(prefix, 'current')));
}

export function releaseDirectory({ prefix }: Installation, version: string): string {
  return path.join(prefix, version);
}

/** Version and commit of an installed release; null where it is not installed. */
export function releaseMark(installation: Installation, version: string): string | null {
  const file = path.join(releaseDirectory(installation, version), 'RELEASE');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}

/** Installed versions, newest first. */
export function installedVersions(installation: Installation): string[] {
  const names = readdirSync(installation.prefix).filter(
    (name) => semver.valid(name) === name && releaseMark(installation, name) !== null,
  );
  return names.sort(semver.rcompare);
}

/** The newest installed version below the current one. */
export function versionBefore(installation: Installation): string | null {
  const current = currentVersion(installation);
  return installedVersions(installation).find((version) => semver.lt(version, current)) ?? null;
}

/** Replaces a link in one step: it leads to the one or to the other at any moment. */
export async function replaceLink(link: string, target: string): Promise<void> {
  const draft = `${link}.new`;
  await rm(draft, { force: true });
  await symlink(target, draft);
  await rename(draft, link);
}

/**
 * Whether processes still run programs of a release: applications that have been running since then see its Node.js
 * through their mounts.
 */
export function isReleaseInUse(directory: string): boolean {
  return readdirSync('/proc').some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      if (readlinkSync(`/proc/${pid}/exe`).startsWith(`${directory}/`)) return true;
      return readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(` ${directory} `);
    } catch {
      // It has ended, or it is a thread of the kernel.
      return false;
    }
  });
}
