// External requests allowed within an API request (docs/decisions/rules.md §2): read-only, with a time-out of a few
// seconds.
import type { Config } from '../../core/config';
import type { BranchesResult, Probes, SourceMiss, SourceResult } from '../../core/context';
import { limits } from '../../core/limits';
import type { LoginProviderClient } from '../../core/accounts/login_provider';
import { dnsQuestions } from '../../core/protocols/dns';
import { driverContext, DriverError, type DriverContext } from '../../core/driver';
import { openGitProviders } from '../../drivers/git_provider/open';
import type { GitProviders } from '../../drivers/git_provider';
import { openLoginProvider } from '../../drivers/login_provider/open';
import { openMonitor } from '../../drivers/monitor/open';
import type { Monitor } from '../../drivers/monitor';
import { openObjectStorage } from '../../drivers/object_storage/open';
import { SourceError, type GitRemote, type SourceDriver, type Revision } from '../../drivers/source';
import { openSource } from '../../drivers/source/git';
import { uploadsMark } from '../../drivers/source/upload_files';
import { outboundOf, sourceOptionsOf } from './outbound';
import { zoneProbes } from './zone_probes';

/** Opens drivers lazily: the directory for sources is created at the first query of a repository. */
export function openProbes(config: Config): Probes {
  let driver: Promise<SourceDriver> | null = null;
  const source = (): Promise<SourceDriver> =>
    (driver ??= openSource(sourceOptionsOf(config)).catch((error: unknown) => {
      driver = null;
      throw error;
    }));
  const dns = dnsQuestions({ resolvers: [...config.dnsResolvers] });
  let checks: Monitor | null = null;
  let git: GitProviders | null = null;
  const providers = (): GitProviders => (git ??= openGitProviders(outboundOf(config)));
  const monitor = (): Monitor => (checks ??= openMonitor(outboundOf(config)));
  return {
    dns,
    zone: zoneProbes(config, dns),
    source: {
      resolveCommit: async (remote, wanted) => resolveCommit(await source(), remote, wanted),
      listBranches: async (remote) => listBranches(await source(), remote),
    },
    sourceUploadsMark: () => uploadsMark(config),
    bucketObjects: bucketObjects(config),
    check: (check) => monitor().check(check),
    login: loginProviders(config),
    git: (access) => providers().client(access),
    gitOauth: {
      authorizationUrl: (...given) => providers().oauth.authorizationUrl(...given),
      exchangeCode: (...given) => providers().oauth.exchangeCode(...given),
      refresh: (...given) => providers().oauth.refresh(...given),
    },
  };
}

function loginProviders(config: Config): Probes['login'] {
  const opened = new Map<string, LoginProviderClient>();
  return (name) => {
    const setting = config.loginProviders.find((one) => one.name === name);
    const known = opened.get(name);
    if (!setting || known) return known ?? null;
    const trusted = outboundOf({ ...config, allowPrivateAddresses: true });
    const provider = openLoginProvider(setting, outboundOf(config), trusted);
    opened.set(name, provider);
    return provider;
  };
}

function bucketObjects(config: Config): Probes['bucketObjects'] {
  const list = openObjectStorage(config)?.list;
  if (!list) return null;
  return async (bucket, question) => {
    try {
      return await list(bucket, question, driverContext(limits.probeTimeoutMs));
    } catch (error) {
      if (error instanceof DriverError) return null;
      throw error;
    }
  };
}

async function resolveCommit(source: SourceDriver, remote: GitRemote, wanted: Revision): Promise<SourceResult> {
  try {
    return { found: true, ...(await source.resolveHead(remote, wanted, probeContext())) };
  } catch (error) {
    return missOf(error);
  }
}

/** A silent repository is given up soon; one that answers gets the time that a busy machine needs. */
function probeContext(): DriverContext {
  return { ...driverContext(limits.sourceProbeMs), stallMs: limits.probeTimeoutMs };
}

async function listBranches(source: SourceDriver, remote: GitRemote): Promise<BranchesResult> {
  try {
    return { found: true, branches: await source.listBranches(remote, probeContext()) };
  } catch (error) {
    return missOf(error);
  }
}

function missOf(error: unknown): SourceMiss {
  if (!(error instanceof SourceError)) throw error;
  return { found: false, failure: error.failure, message: error.message };
}
