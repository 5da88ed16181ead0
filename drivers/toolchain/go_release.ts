// The Go that a host without one gets. One release is enough: from 1.21 on Go downloads what a go.mod asks for by
// itself, and checks it against the checksum database (https://go.dev/doc/toolchain).

export interface GoSource {
  /** As GOPROXY lists them. */
  proxy: string;
  version: string;
  /** By platform and architecture as Node.js names them: the `h1:` hash of the module, as go.sum has it. */
  hashes: Partial<Record<string, string>>;
}

export const GO_MODULE = 'golang.org/toolchain';
const architectures: Partial<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Newer releases are put here with the hashes that `go mod download -json` prints. */
export const goRelease: Omit<GoSource, 'proxy'> = {
  version: '1.26.8',
  hashes: {
    'linux-x64': 'h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=',
    'linux-arm64': 'h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=',
  },
};

/** null where there is none for this host. */
export function goHash({ hashes }: GoSource): string | null {
  return hashes[`${process.platform}-${process.arch}`] ?? null;
}

/** The version of its module, which begins the names in its archive. */
export function goModuleVersion(version: string): string {
  return `v0.0.1-go${version}.${process.platform}-${architectures[process.arch] ?? process.arch}`;
}

/** Those of the proxies that can be asked without Go. */
export function proxyAddresses({ proxy }: GoSource): string[] {
  return proxy.split(/[,|]/).filter((one) => /^https?:\/\//.test(one));
}
