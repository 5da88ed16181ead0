// Kubeconfigs in the form in which tools and providers write them, with made-up names and credentials.

const PEM = Buffer.from('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n').toString('base64');
const KEY = Buffer.from('-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n').toString('base64');

interface Sample {
  server?: string;
  /** Further lines of the cluster. */
  cluster?: string[];
  /** Lines of the user. */
  user: string[];
}

const certificates = [`client-certificate-data: ${PEM}`, `client-key-data: ${KEY}`];
const plugin = (version: string, command: string, ...more: string[]): string[] => [
  'exec:',
  `  apiVersion: client.authentication.k8s.io/${version}`,
  `  command: ${command}`,
  ...more.map((line) => `  ${line}`),
];

export const SUPPORTED: Record<string, Sample> = {
  k3s: { server: 'https://127.0.0.1:6443', user: certificates },
  kind: { server: 'https://127.0.0.1:36461', user: certificates },
  minikube: {
    server: 'https://192.168.49.2:8443',
    cluster: ['extensions: [{name: cluster_info, extension: {provider: minikube.sigs.k8s.io, version: v1.35.0}}]'],
    user: ['client-certificate: profiles/minikube/client.crt', 'client-key: profiles/minikube/client.key'],
  },
  EKS: {
    server: 'https://83b2.yl4.eu-central-1.eks.amazonaws.com',
    user: plugin('v1beta1', 'aws', 'args: [--region, eu-central-1, eks, get-token, --cluster-name, shop]', 'env: null'),
  },
  'EKS with a profile': {
    user: plugin('v1', 'aws-iam-authenticator', 'args: [token, -i, "7"]', 'env: [{name: AWS_PROFILE, value: shop}]'),
  },
  GKE: {
    server: 'https://34.89.1.2',
    user: plugin(
      'v1beta1',
      'gke-gcloud-auth-plugin',
      'args: null',
      'env: null',
      'installHint: Install gke-gcloud-auth-plugin for use with kubectl',
      'interactiveMode: IfAvailable',
      'provideClusterInfo: true',
    ),
  },
  AKS: {
    server: 'https://shop-dns-1a2b.hcp.westeurope.azmk8s.io:443',
    user: plugin(
      'v1beta1',
      'kubelogin',
      'args: [get-token, --login, workloadidentity, --server-id, 6dae]',
      'env: null',
    ),
  },
  DigitalOcean: {
    server: 'https://1a2b.k8s.ondigitalocean.com',
    user: plugin(
      'v1beta1',
      'doctl',
      'args: [kubernetes, cluster, kubeconfig, exec-credential, --version=v1beta1, "9"]',
    ),
  },
  OpenShift: { server: 'https://api.shop.example.com:6443', user: ['token: sha256~made-up'] },
  Rancher: {
    server: 'https://rancher.example.com/k8s/clusters/c-m-1a2b',
    user: ['token: "kubeconfig-user-1a:made-up"'],
  },
  Teleport: {
    server: 'https://teleport.example.com:443',
    cluster: ['tls-server-name: kube-teleport-proxy-alpn.teleport.cluster.local'],
    user: plugin('v1beta1', '/usr/local/bin/tsh', 'args: [kube, credentials]'),
  },
  'a service account': { user: ['tokenFile: tokens/deployer'] },
};

/** With a part of what is said about it. */
export const REFUSED: Record<string, Sample & { because: RegExp }> = {
  'GKE until 1.25': {
    user: ['auth-provider:', '  name: gcp', '  config: {cmd-path: /usr/lib/gcloud, expiry-key: "{.credential}"}'],
    because: /`auth-provider` \(gcp\), which is not supported\. Run `gcloud container clusters get-credentials` again/,
  },
  'AKS until 1.25': {
    user: ['auth-provider:', '  name: azure', '  config: {tenant-id: t, apiserver-id: a, access-token: made-up}'],
    because: /`auth-provider` \(azure\).* Run `kubelogin convert-kubeconfig`/,
  },
  'OIDC by a provider': {
    user: ['auth-provider:', '  name: oidc', '  config: {client-id: c, id-token: made-up, idp-issuer-url: https://x}'],
    because: /`auth-provider` \(oidc\).* `kubectl oidc-login`/,
  },
  'EKS until 2022': {
    user: plugin('v1alpha1', 'aws', 'args: [eks, get-token, --cluster-name, shop]'),
    because: /exec plugin of the version `client.authentication.k8s.io\/v1alpha1`.*v1 and v1beta1 work\./,
  },
  'a plugin that asks': {
    user: plugin('v1', 'ask', 'interactiveMode: Always'),
    because: /an exec plugin that asks questions/,
  },
  'a password': { user: ['username: admin', 'password: made-up'], because: /uses a password, .* since 1\.19/ },
  'a proxy': { cluster: ['proxy-url: socks5://10.0.0.1:1080'], user: certificates, because: /`proxy-url`/ },
  'kubectl proxy': { server: 'http://127.0.0.1:8001', user: ['token: made-up'], because: /without https/ },
  'an address that is none': {
    server: '"shop:6443:1"',
    user: ['token: made-up'],
    because: /not an address|without https/,
  },
  'a certificate alone': { user: [certificates[0] as string], because: /a certificate without its key/ },
  'data that are no PEM': {
    user: ['client-certificate-data: bWFkZS11cA==', certificates[1] as string],
    because: /`client-certificate-data` that are not PEM in base64/,
  },
  'an authority that nobody checks': {
    cluster: ['insecure-skip-tls-verify: true'],
    user: certificates,
    because: /both an authority and `insecure-skip-tls-verify`/,
  },
  'more than a user to act as': {
    user: ['token: made-up', 'as: admin', 'as-user-extra: {reason: [test]}'],
    because: /`as-user-extra`/,
  },
};

export function kubeconfigOf({ server = 'https://10.0.0.1:6443', cluster = [], user }: Sample): string {
  const indent = (lines: readonly string[]): string => lines.map((line) => `    ${line}\n`).join('');
  return `apiVersion: v1
kind: Config
preferences: {}
clusters:
- cluster:
    certificate-authority-data: ${PEM}
    server: ${server}
${indent(cluster)}  name: shop
contexts:
- context:
    cluster: shop
    user: admin
  name: shop
current-context: shop
users:
- name: admin
  user:
${indent(user)}`;
}
