<?php
// A Laravel program without a project of its own: its settings, its jobs and its commands. Run as
// `php laravel.php COMMAND`, with the port and the folder of the scenario in the environment.

require 'Illuminate/autoload.php';

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldBeUnique;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\Bus;
use Illuminate\Support\Facades\Cache;
use Illuminate\Support\Facades\Queue;
use Illuminate\Support\Facades\Redis;

define('FOLDER', getenv('SCENARIO_FOLDER'));

function note($file, $line)
{
    file_put_contents(FOLDER."/$file", "$line\n", FILE_APPEND | LOCK_EX);
}

function notes($file)
{
    return is_file(FOLDER."/$file") ? file(FOLDER."/$file", FILE_IGNORE_NEW_LINES) : [];
}

abstract class Job implements ShouldQueue
{
    use InteractsWithQueue, Queueable;

    public $name;

    public function __construct($name)
    {
        $this->name = $name;
    }
}

/** Lasts until the server is back, once enough have run. */
class Work extends Job
{
    public $tries = 5;

    public function handle()
    {
        note('began', $this->name);
        while (count(notes('began')) > 8 && ! notes('back')) {
            usleep(50000);
        }
        note('ran', $this->name);
    }
}

class Again extends Job
{
    public $tries = 4;
    public $backoff = 1;

    public function handle()
    {
        note('again', microtime(true));
        if (count(notes('again')) <= $this->name) {
            throw new RuntimeException('attempt '.$this->attempts());
        }
    }
}

class Hopeless extends Job
{
    public $tries = 2;
    public $backoff = 1;

    public function handle()
    {
        note('hopeless', 'tried');
        throw new RuntimeException('hopeless');
    }

    public function failed($error)
    {
        note('failed', $error->getMessage());
    }
}

class Later extends Job
{
    public function handle()
    {
        note($this->name, microtime(true));
    }
}

class Unique extends Later implements ShouldBeUnique
{
    public $uniqueFor = 600;

    public function uniqueId()
    {
        return $this->name;
    }
}

class Kernel extends Illuminate\Foundation\Console\Kernel
{
    protected $bootstrappers = [
        Illuminate\Foundation\Bootstrap\RegisterFacades::class,
        Illuminate\Foundation\Bootstrap\RegisterProviders::class,
        Illuminate\Foundation\Bootstrap\BootProviders::class,
    ];

    protected function commands()
    {
        Artisan::command('push {class} {names*}', function () {
            foreach ($this->argument('names') as $name) {
                dispatch((new ($this->argument('class'))($name))->onQueue('work'));
            }
        });
        Artisan::command('push:later {name} {seconds}', function () {
            $job = (new Later($this->argument('name')))->onQueue('work');
            dispatch($job->delay((int) $this->argument('seconds')));
        });
        Artisan::command('push:chain {names*}', function () {
            $jobs = array_map(fn ($name) => new Later($name), $this->argument('names'));
            Bus::chain($jobs)->onQueue('work')->dispatch();
        });
        Artisan::command('use:cache', function () {
            $throttled = array_map(fn () => Redis::throttle('few')->block(0)->allow(2)->every(60)
                ->then(fn () => false, fn () => true), [1, 2, 3]);
            $lock = Cache::lock('lock', 60);
            $this->line(json_encode([
                'throttled' => $throttled,
                'locks' => [$lock->get(), Cache::lock('lock', 60)->get(), $lock->release()],
                'counted' => [Cache::increment('counter', 5), Cache::decrement('counter')],
                'remembered' => Cache::remember('remembered', 60, fn () => ['a' => 1]),
            ]));
        });
        Artisan::command('report', function () {
            $failed = fn ($job) => [$job->queue, strtok($job->exception, "\n")];
            $this->line(json_encode([
                'size' => Queue::size('work'),
                'failed' => array_map($failed, app('queue.failer')->all()),
                'keys' => Redis::keys('*'),
            ]));
        });
    }
}

@mkdir(FOLDER.'/bootstrap/cache', 0777, true);
$database = FOLDER.'/database.sqlite';
$app = new Illuminate\Foundation\Application(FOLDER);
$app->instance('env', 'production');
$server = ['host' => '127.0.0.1', 'port' => (int) getenv('SCENARIO_PORT'), 'database' => 0];
$app->instance('config', new Illuminate\Config\Repository([
    'app' => [
        'name' => 'jobs',
        'timezone' => 'UTC',
        'locale' => 'en',
        'key' => str_repeat('k', 32),
        'cipher' => 'AES-256-CBC',
        'aliases' => [],
        'providers' => [
            Illuminate\Bus\BusServiceProvider::class,
            Illuminate\Cache\CacheServiceProvider::class,
            Illuminate\Database\DatabaseServiceProvider::class,
            Illuminate\Encryption\EncryptionServiceProvider::class,
            Illuminate\Filesystem\FilesystemServiceProvider::class,
            Illuminate\Foundation\Providers\ConsoleSupportServiceProvider::class,
            Illuminate\Queue\QueueServiceProvider::class,
            Illuminate\Redis\RedisServiceProvider::class,
        ],
    ],
    'cache' => [
        'default' => 'redis',
        'prefix' => 'cache',
        'stores' => ['redis' => ['driver' => 'redis', 'connection' => 'default']],
    ],
    'database' => [
        'default' => 'sqlite',
        'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => $database]],
        'redis' => ['client' => 'phpredis', 'options' => ['prefix' => 'app:'], 'default' => $server],
    ],
    'logging' => ['default' => 'errorlog', 'channels' => ['errorlog' => ['driver' => 'errorlog']]],
    'queue' => [
        'default' => 'redis',
        'connections' => ['redis' => [
            'driver' => 'redis',
            'connection' => 'default',
            'queue' => 'work',
            'retry_after' => 30,
            'block_for' => 1,
        ]],
        'failed' => ['driver' => 'database-uuids', 'database' => 'sqlite', 'table' => 'failed_jobs'],
    ],
]));
$app->singleton(Illuminate\Contracts\Console\Kernel::class, Kernel::class);
$app->singleton(
    Illuminate\Contracts\Debug\ExceptionHandler::class,
    Illuminate\Foundation\Exceptions\Handler::class
);

// Where Laravel keeps failed jobs.
$sqlite = new PDO("sqlite:$database");
$sqlite->exec('create table if not exists failed_jobs (id integer primary key, uuid text, connection text,
    queue text, payload text, exception text, failed_at datetime default current_timestamp)');
unset($sqlite);

exit($app->make(Illuminate\Contracts\Console\Kernel::class)->handle(
    new Symfony\Component\Console\Input\ArgvInput(),
    new Symfony\Component\Console\Output\ConsoleOutput()
));
