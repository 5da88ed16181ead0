<?php

require __DIR__ . '/../vendor/autoload.php';

if ($_SERVER['REQUEST_URI'] === '/slow') {
    sleep(3);
}
if ($_SERVER['REQUEST_URI'] === '/log') {
    error_log('written by PHP');
}
header('Content-Type: application/json');
echo json_encode([
    'text' => Greeting\Text::of('PHP'),
    'path' => $_SERVER['REQUEST_URI'],
    'https' => $_SERVER['HTTPS'] ?? null,
    'address' => $_SERVER['REMOTE_ADDR'],
    'name' => getenv('SVC_APPLICATION_NAME'),
    'proxy' => getenv('HTTP_PROXY') ?: null,
    'body' => file_get_contents('php://input'),
]);
