# Become a machine of the cluster, as the word says: the controller, a node or a login machine. /cluster has what all
# machines of one cluster have: slurm.conf, gres.conf, slurmdbd.conf, the key of MUNGE, and the address of the controller.
set -eu
install -o munge -g munge -m 400 /cluster/munge.key /etc/munge/munge.key
install -d -o munge -g munge -m 755 /run/munge
ln -sfn /cluster/slurm.conf /cluster/gres.conf /etc/slurm/
mkdir -p /shared /var/spool/slurmctld /var/spool/slurmd
runuser -u munge -- munged
controller=$(cat /cluster/controller)

if [ "$1" = controller ]; then
  echo '* / rw,alldirs,admin,maproot=0:0' >/etc/mfs/mfsexports.cfg
  cp /var/lib/mfs/metadata.mfs.empty /var/lib/mfs/metadata.mfs
  install -d -o mfs -g mfs /srv/chunks
  echo /srv/chunks >/etc/mfs/mfshdd.cfg
  printf 'MASTER_HOST = %s\nHDD_LEAVE_SPACE_DEFAULT = 0MiB\n' "$controller" >/etc/mfs/mfschunkserver.cfg
  touch /etc/mfs/mfsmaster.cfg
  chown -R mfs: /var/lib/mfs
  mfsmaster start
  mfschunkserver start
fi

# Attributes and entries are cached for as long as NFS does at least (acregmin of nfs(5) is 3 s), and data by the kernel.
until mfsmount /shared -H "$controller" -o mfsattrcacheto=3,mfsentrycacheto=3,mfsdirentrycacheto=3,mfscachemode=YES; do
  sleep 0.2
done

case $1 in
  controller)
    mfssetgoal -r 1 /shared
    mkdir -p /shared/software
    for user in ada bob; do install -d -o $user -g $user -m 700 /shared/home/$user; done
    install -d -o mysql /run/mysqld
    mariadbd --user=mysql --skip-networking --innodb-buffer-pool-size=64M >/var/log/mariadb.log 2>&1 &
    until mysqladmin ping >/dev/null 2>&1; do sleep 0.2; done
    mysql -e "create database slurm_acct_db"
    install -m 600 /cluster/slurmdbd.conf /etc/slurm/slurmdbd.conf
    slurmdbd
    until sacctmgr -i show cluster >/dev/null 2>&1; do sleep 0.2; done
    sacctmgr -i add cluster "$(sed -n 's/^ClusterName=//p' /cluster/slurm.conf)"
    slurmctld
    exec sleep infinity
    ;;
  node)
    for device in 0 1; do mknod /dev/no-gpu$device c 1 3; done
    exec slurmd -D
    ;;
  login) exec sleep infinity ;;
esac
