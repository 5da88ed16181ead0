// Names of the platform's objects in a cluster that others have to know, too.

/** Ids have an underscore, which names of objects must not have. */
export function objectNameOf(id: string): string {
  return id.replace('_', '-');
}

/** @param prefix KUBERNETES_NAMESPACE_PREFIX */
export function namespaceOf(prefix: string, projectId: string): string {
  return `${prefix}-${objectNameOf(projectId)}`;
}

/** What pods of the cluster connect to: the name of the Service of a server, which its DNS resolves. */
export function serviceHostOf(prefix: string, projectId: string, serverId: string): string {
  return `${objectNameOf(serverId)}.${namespaceOf(prefix, projectId)}.svc`;
}
