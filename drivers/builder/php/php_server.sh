# PHP-FPM, and nginx in front of it. $1: the folder that is published, relative to the root directory.
case $1 in
  -*)
    echo "The option $1 is not known here: only the folder that is published may be named." >&2
    exit 2
    ;;
esac
root=$PWD/${1:-.}
run=$(mktemp -d) || exit 1
limit=$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | head -n 1)
case $limit in
  '' | max | ????????????*) workers=8 ;;
  *) workers=$((limit / 67108864)) ;;
esac
[ "$workers" -gt 2 ] || workers=2
cat > "$run/fpm.conf" <<END
[global]
daemonize = no
error_log = $run/fpm.log
log_limit = 65536
pid = $run/fpm.pid
log_level = warning
[www]
listen = $run/fpm.sock
pm = ondemand
pm.max_children = ${WEB_CONCURRENCY:-$workers}
pm.process_idle_timeout = 60s
clear_env = no
catch_workers_output = yes
decorate_workers_output = no
php_value[error_log] = /proc/self/fd/2
END
cat > "$run/nginx.conf" <<END
daemon off;
worker_processes 1;
pid $run/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  server_tokens off;
  sendfile on;
  client_max_body_size 0;
  # Cookies of some frameworks do not fit in the 8 KB and 4 KB that nginx has for headers.
  large_client_header_buffers 4 32k;
  fastcgi_buffer_size 64k;
  fastcgi_buffers 8 64k;
  client_body_temp_path $run/body;
  fastcgi_temp_path $run/fastcgi;
  proxy_temp_path $run/proxy;
  uwsgi_temp_path $run/uwsgi;
  scgi_temp_path $run/scgi;
  absolute_redirect off;
  default_type application/octet-stream;
  types {
    text/html html htm; text/css css; text/javascript js mjs; text/plain txt; text/xml xml; text/csv csv;
    application/json json map; application/manifest+json webmanifest; application/pdf pdf; application/wasm wasm;
    application/zip zip; image/svg+xml svg; image/png png; image/jpeg jpg jpeg; image/gif gif; image/webp webp;
    image/avif avif; image/x-icon ico; font/woff woff; font/woff2 woff2; font/ttf ttf; font/otf otf;
    audio/mpeg mp3; video/mp4 mp4; video/webm webm;
  }
  map \$http_x_forwarded_proto \$secure { https on; default ''; }
  # Programs write this port into addresses, and visitors do not reach that of the unit.
  map \$http_x_forwarded_proto \$visited_port { https 443; http 80; default \$server_port; }
  set_real_ip_from 0.0.0.0/0;
  set_real_ip_from ::/0;
  real_ip_header X-Forwarded-For;
  server {
    listen ${SVC_LISTEN_ADDRESS:-127.0.0.1}:$PORT;
    root "$root";
    index index.php index.html;
    location ~ /\.(?!well-known(?:/|\$)) { return 404; }
    location ~* ^/(?:vendor|node_modules)/.*\.php\$ { return 404; }
    # Not sent as they are: an address like one of these may be a route of the program.
    location ~* /(?:composer\.(?:json|lock)|auth\.json|package(?:-lock)?\.json|Procfile|[^/]*compose\.ya?ml)\$ {
      try_files /. /index.php\$is_args\$args;
    }
    location ~* (?:~|\.php\.[a-z0-9]+|\.(?:php[3-8s]|phtml|phar|inc|bak|old|orig|save|swp|sql(?:\.gz)?|log|ini|sh))\$ {
      try_files /. /index.php\$is_args\$args;
    }
    location / { try_files \$uri \$uri/ /index.php\$is_args\$args; }
    location ~ \.php\$ {
      try_files \$uri =404;
      fastcgi_pass unix:$run/fpm.sock;
      fastcgi_read_timeout 1h;
      fastcgi_buffering off;
      fastcgi_param QUERY_STRING \$query_string;
      fastcgi_param REQUEST_METHOD \$request_method;
      fastcgi_param CONTENT_TYPE \$content_type;
      fastcgi_param CONTENT_LENGTH \$content_length;
      fastcgi_param SCRIPT_NAME \$fastcgi_script_name;
      fastcgi_param SCRIPT_FILENAME \$document_root\$fastcgi_script_name;
      fastcgi_param DOCUMENT_ROOT \$document_root;
      fastcgi_param DOCUMENT_URI \$document_uri;
      fastcgi_param REQUEST_URI \$request_uri;
      fastcgi_param REQUEST_SCHEME \$http_x_forwarded_proto;
      fastcgi_param HTTPS \$secure if_not_empty;
      fastcgi_param SERVER_PROTOCOL \$server_protocol;
      fastcgi_param SERVER_NAME \$host;
      fastcgi_param SERVER_PORT \$visited_port;
      fastcgi_param SERVER_ADDR \$server_addr;
      fastcgi_param REMOTE_ADDR \$remote_addr;
      fastcgi_param REMOTE_PORT \$remote_port;
      # A visitor's header Proxy would become the variable HTTP_PROXY of programs (CVE-2016-5385).
      fastcgi_param HTTP_PROXY '';
      fastcgi_param REDIRECT_STATUS 200;
    }
    location ~* \.php\$ { return 404; }
  }
}
END
"$nginx" -e stderr -c "$run/nginx.conf" & web=$!
# Each ends with the other one. Requests that have begun are finished.
{
  "$fpm" -F -O -y "$run/fpm.conf" || echo "PHP-FPM ended with exit code $?." >&2
  kill -QUIT "$web" 2>/dev/null
} &
ended=0
trap 'kill -QUIT "$web"; ended=1' TERM INT
while kill -0 "$web" 2>/dev/null; do wait "$web"; done
kill -QUIT "$(cat "$run/fpm.pid")" 2>/dev/null
rm -rf "$run"
[ "$ended" = 1 ]
