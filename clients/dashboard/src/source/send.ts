// Sends a folder or an archive as the source of a deployment.
import { ApiError, request, UNREACHABLE } from '../api/client';
import { graphql } from '../api/graphql';
import { bytesText } from '../parts/time';
import { packFiles } from './tar';
import type { Chosen } from './files';

const CREATE = graphql(`
  mutation CreateSourceUpload($id: ID!, $input: CreateSourceUploadInput!) {
    createSourceUpload(id: $id, input: $input) {
      id
      upload_url
      bytes_max
    }
  }
`);

/** @param progress gets a sentence. @returns the id of the upload. @throws ApiError */
export async function sendSource(id: string, chosen: Chosen, progress: (text: string) => void): Promise<string> {
  progress('Packing the files …');
  const archive = chosen.kind === 'archive' ? chosen.file : await packFiles(chosen.files).catch(unreadable);
  const { createSourceUpload: upload } = await request(CREATE, { id, input: { size_bytes: archive.size } });
  if (archive.size > upload.bytes_max)
    throw new ApiError(
      'page_error',
      0,
      `The archive has ${bytesText(archive.size)}, at most ${bytesText(upload.bytes_max)} are taken.`,
    );
  await sendFile(upload.upload_url, archive, progress);
  return upload.id;
}

function unreadable(): never {
  throw new ApiError('page_error', 0, 'A file was changed or removed since it was chosen. Choose the folder again.');
}

/** Sends a file to its address. @param progress gets a sentence. @throws ApiError */
export async function sendFile(address: string | null, file: Blob, progress: (text: string) => void): Promise<void> {
  // The address names the platform as the world sees it. This page may have come from another address of it.
  const { pathname, search } = new URL(address ?? '', location.href);
  await put(pathname + search, file, progress);
}

/** By XMLHttpRequest, which alone says how much was sent. */
function put(address: string, archive: Blob, progress: (text: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = new XMLHttpRequest();
    sent.open('PUT', address);
    sent.upload.addEventListener('progress', ({ loaded }) =>
      progress(`Sending ${bytesText(archive.size)}: ${Math.floor((100 * loaded) / archive.size)} %`),
    );
    sent.upload.addEventListener('load', () => progress('The server checks the file …'));
    sent.addEventListener('error', () => reject(new ApiError('unreachable', 0, UNREACHABLE)));
    sent.addEventListener('load', () => (sent.status < 300 ? resolve() : reject(refusalOf(sent))));
    sent.send(archive);
  });
}

function refusalOf({ status, responseText }: XMLHttpRequest): ApiError {
  try {
    const { code = 'internal_error', detail = '' } = JSON.parse(responseText) as { code?: string; detail?: string };
    return new ApiError(code, status, detail || 'The file was refused.');
  } catch {
    return new ApiError('internal_error', status, `The server refused the file (HTTP status ${status}).`);
  }
}
