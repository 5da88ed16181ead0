// Downloads Go from a Go module proxy, without an installed Go.
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { DriverError, type DriverContext, isDiskFull } from '../../core/driver';
import type { Tool } from '../toolchain';
import { GO_MODULE, goHash, goModuleVersion, proxyAddresses, type GoSource } from './go_release';
import { ArchiveError, downloadArchive, unpackArchive } from './module_archive';

/** Installs it in `prefix`. @throws DriverError */
export async function downloadGo(
  { version }: Tool,
  source: GoSource,
  { staging, prefix }: { staging: string; prefix: string },
  ctx: DriverContext,
): Promise<void> {
  const file = path.join(staging, 'go.zip');
  const moduleVersion = goModuleVersion(version);
  await downloadFromAny(version, `${GO_MODULE}/@v/${moduleVersion}.zip`, source, file, ctx);
  const hash = await unpackArchive(file, `${GO_MODULE}@${moduleVersion}/`, prefix).catch((error: unknown) => {
    if (!(error instanceof ArchiveError)) throw error;
    return null;
  });
  await rm(file);
  if (hash !== goHash(source))
    throw new DriverError('transient', `The Go ${version} of the Go module proxy does not have the expected hash.`);
}

async function downloadFromAny(
  version: string,
  place: string,
  source: GoSource,
  file: string,
  { signal }: DriverContext,
): Promise<void> {
  const failed = `The Go module proxy did not send Go ${version}.`;
  for (const address of proxyAddresses(source)) {
    const found = await downloadArchive(`${address.replace(/\/+$/, '')}/${place}`, file, signal).catch(
      (error: unknown) => {
        if (isDiskFull(error)) throw error;
        throw Object.assign(new DriverError('transient', failed), { cause: error });
      },
    );
    if (found) return;
  }
  throw new DriverError('unsupported', `${failed} GO_PROXY names no proxy that has it.`);
}
