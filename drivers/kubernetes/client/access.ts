// How a cluster is reached, and as whom.

/** PEM, in place or in a file that may be replaced. */
export type Pem = { text: string } | { file: string };

export interface ClusterAccess {
  /** https; may have a path, as behind Rancher. */
  server: URL;
  /** Of the server's certificate; null: those that Node trusts. */
  authority: Pem | null;
  /** Checked in the place of the host in `server`. */
  serverName: string | null;
  verifiesServer: boolean;
  /** Of the context; `default` unless it says another. */
  namespace: string;
  user: UserAccess;
}

export interface UserAccess {
  client: { certificate: Pem; key: Pem } | null;
  token: string | null;
  /** Read again and again, since it is replaced. */
  tokenFile: string | null;
  exec: ExecPlugin | null;
  /** Headers that name the user to act as. */
  impersonation: Record<string, string | string[]>;
}

/** A program that prints an ExecCredential (client.authentication.k8s.io). */
export interface ExecPlugin {
  apiVersion: string;
  command: string;
  args: string[];
  env: Record<string, string>;
  /** Told about the cluster in KUBERNETES_EXEC_INFO. */
  providesClusterInfo: boolean;
  /** How to install it, in the words of the kubeconfig. */
  installHint: string | null;
}
