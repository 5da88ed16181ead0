// Threads of libuv that wait for the disk, set before anything uses one. An fsync takes one for as long as the disk
// takes: with the four that there are by default, eight uploads keep every read of a file waiting.
process.env.UV_THREADPOOL_SIZE ??= '16';
