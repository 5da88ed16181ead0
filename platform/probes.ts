// What a request may ask the outside world (docs/decisions/rules.md §2): read-only, and over after a few seconds.
import { isPublicAddress } from '../core/addresses';
import type { Config } from '../core/config';
import type { Probes, SourceResult } from '../core/context';
import { limits } from '../core/limits';
import { dnsQuestions } from '../drivers/dns';
import { driverContext } from '../drivers/driver';
import { openMonitor, type Monitor } from '../drivers/monitor';
import { openOutbound, type Outbound } from '../drivers/outbound';
import { SourceError, type GitRemote, type SourceDriver, type Revision } from '../drivers/source';
import { openSource } from '../drivers/source/git';
import { zoneProbes } from './zone_probes';

/** Opens nothing yet: the folder for sources is made when a repository is first asked. */
export function openProbes(config: Config): Probes {
  let driver: Promise<SourceDriver> | null = null;
  const source = (): Promise<SourceDriver> =>
    (driver ??= openSources(config).catch((error: unknown) => {
      driver = null;
      throw error;
    }));
  const dns = dnsQuestions({ resolvers: [...config.dnsResolvers] });
  let checks: Monitor | null = null;
  const monitor = (): Monitor => (checks ??= openMonitor(outboundOf(config)));
  return {
    dns,
    zone: zoneProbes(config, dns),
    source: { resolveCommit: async (remote, wanted) => resolveCommit(await source(), remote, wanted) },
    check: (check) => monitor().check(check),
  };
}

/** What this installation sends out to addresses of users. */
export function outboundOf({ allowPrivateAddresses, dnsResolvers, outboundCaFile }: Config): Outbound {
  return openOutbound({
    isAllowed: allowPrivateAddresses ? () => true : isPublicAddress,
    hostsFile: allowPrivateAddresses,
    resolvers: dnsResolvers,
    caFile: outboundCaFile,
  });
}

function openSources({
  runtimeDir,
  sourceSizeMb,
  allowHttpGit,
  allowLocalGit,
  allowPrivateAddresses,
}: Config): Promise<SourceDriver> {
  return openSource({
    directory: runtimeDir,
    sizeMb: sourceSizeMb,
    allowHttpGit,
    allowLocalGit,
    allowPrivateAddresses,
  });
}

async function resolveCommit(source: SourceDriver, remote: GitRemote, wanted: Revision): Promise<SourceResult> {
  try {
    return { found: true, ...(await source.resolveHead(remote, wanted, driverContext(limits.probeTimeoutMs))) };
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return { found: false, failure: error.failure, message: error.message };
  }
}
